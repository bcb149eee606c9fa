"""Lines: the items of an export as lines of JSON, written in one way and read with distrust.

    {"part":"graph","item":{…}}            first, once
    {"part":"<part>","item":{…}}           items (services/upkeep/items.py), each after what it needs

docs/export-format.md tells the format. A file may come from anywhere: ids must be of our alphabet, numbers
must fit into 64 bits, and nothing of a line is told when it is refused.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import Field, TypeAdapter

from services.domain.ids import EntityId, EpisodeId, JobId, PassageId, RecordId, SpanId, StatementId, VoiceId
from services.upkeep.items import Item, Part, from_json, part_of, to_json

GRAPH = "graph"
"""The part of the first line."""
_LINE = re.compile(rb'\{"part":"([a-z]{1,32})","item":(\{.*\})\}', re.DOTALL)
_OUR_ID = re.compile(r"[A-Za-z0-9_-]{0,47}")
_IDS = frozenset({EntityId, EpisodeId, JobId, PassageId, RecordId, SpanId, StatementId, VoiceId})
_LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class GraphLine:
    """The graph itself. `origin`: the key of the scope in which it was begun, from which its ids follow.

    Times are epoch microseconds, `settings` the gateway's, as JSON. `embedder` made the vectors.
    """

    origin: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    created_at: int
    updated_at: int
    settings: dict[str, Any]
    embedder: str
    dimension: int


_GRAPH = TypeAdapter(GraphLine)


def graph_line(graph: GraphLine) -> bytes:
    """The first line, with its end."""
    return _line(GRAPH, _GRAPH.dump_json(graph))


def line_of(item: Item) -> bytes:
    """The line of an item, with its end."""
    return _line(part_of(item), to_json(item))


def part_in(line: bytes) -> str:
    """The part that a line names. Raises ValueError."""
    return _split(line)[0]


def graph_in(line: bytes) -> GraphLine:
    """The graph of the first line. Raises ValueError for anything else."""
    part, body = _split(line)
    if part != GRAPH:
        raise ValueError("the first line is not of the graph")
    graph = _GRAPH.validate_json(body)
    _check(graph)
    return graph


def item_in(line: bytes) -> Item:
    """The item of a line, without its end. Raises ValueError for a line that is none of this version."""
    part, body = _split(line)
    item = from_json(Part(part), body)
    _check(item)
    return item


def items_in(lines: bytes) -> Iterator[Item]:
    """The items of whole lines. Raises ValueError."""
    for line in lines.split(b"\n"):
        if line:
            yield item_in(line)


def _line(part: str, body: bytes) -> bytes:
    return b'{"part":"%s","item":%s}\n' % (part.encode(), body)


def _split(line: bytes) -> tuple[str, bytes]:
    found = _LINE.fullmatch(line.rstrip(b"\n"))
    if found is None:
        raise ValueError("not a line of an export")
    return found[1].decode(), found[2]


def _check(value: Any) -> None:
    """Raises ValueError for an id that is not of our alphabet, or a number that no store holds."""
    kind: Any = type(value)
    ids = _ids_of(kind)
    for field in dataclasses.fields(value):
        _check_value(getattr(value, field.name), ids[field.name])


def _check_value(value: Any, is_id: bool) -> None:
    if isinstance(value, str):
        if is_id and not _OUR_ID.fullmatch(value):
            raise ValueError("an id is not of our alphabet")
    elif isinstance(value, int):
        if not -_LARGEST <= value < _LARGEST:
            raise ValueError("a number does not fit into 64 bits")
    elif isinstance(value, tuple):
        for one in value:
            _check_value(one, is_id)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _check(value)


@cache
def _ids_of(kind: type) -> Mapping[str, bool]:
    hints = get_type_hints(kind)
    return {field.name: _is_id(hints[field.name]) for field in dataclasses.fields(kind)}


def _is_id(hint: Any) -> bool:
    return hint in _IDS or any(_is_id(one) for one in get_args(hint))
