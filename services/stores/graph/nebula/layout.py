"""How a graph lies in NebulaGraph: tags, edge types and their columns. Every name in a sentence is from here.

All scopes share one space; a vid opens with its scope (vids.py). An edge leads from what was said to what it
names, so that a statement's own out-edges are all that is known of it, and the in-edges of a node, a pair, an
episode or a shelf are all that name it. Nothing is ever looked up by an index: there is none.

Edges that only join (`JOINS`) have no columns: their rank is the revision that created their source, and so
`(rank, source)` is the stable order of lists and walks. Other edges are records: written once, told apart by
rank (`vids.place_of` their id). Two things change: the vertices, and the texts of records, which `forget`
writes anew.
"""

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["string", "int64", "double", "bool"]

UNKNOWN_START = -(2**62)
OPEN = 2**62
"""An open end, in world time and in system time. Beyond every instant and revision; NULL is never stored."""
NO_TIME = -(2**62)
NEVER = -1
"""`forgotten_at` of what was not forgotten."""

SHELF_REVISIONS = 256
"""Revisions a shelf. A page of a scan reads one shelf: few enough for that, enough to have few shelves."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class Tag:
    """A kind of vertex."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """A type of edge."""

    name: str
    columns: tuple[Column, ...] = ()


def _columns(**types: ColumnType) -> tuple[Column, ...]:
    return tuple(Column(name, type) for name, type in types.items())


ENTITY = Tag(
    "entity",
    _columns(
        name="string",
        key="string",
        type="string",
        aliases="string",  # a JSON array of texts
        created_at="int64",
        forgotten_at="int64",
    ),
)
STATEMENT = Tag(
    "statement",
    _columns(
        subject="string",
        predicate="string",
        object="string",  # an entity; "" when the object is a literal
        literal_kind="string",
        literal_text="string",
        fact="string",
        aspect="string",
        event_at="int64",
        created_at="int64",
        # The hull of all its spans, past beliefs included; empty (from > to) while it has none.
        hull_from="int64",
        hull_to="int64",
        forgotten_at="int64",
    ),
)

HAS_SUBJECT = Edge("has_subject")
HAS_PREDICATE = Edge("has_predicate")
HAS_OBJECT = Edge("has_object")
"""From a statement to an entity."""
HAS_PAIR = Edge("has_pair")
"""From a statement to its subject with its predicate, and to its subject with its object: slots at a look."""
ON_SHELF = Edge("on_shelf")
"""From a statement or an entity to the shelf of the revision that created it."""
HAS_SHELF = Edge("has_shelf")
"""From a scope's root to its shelves; the rank is the shelf's number."""

ALIAS = Edge("alias", _columns(key="string", type="string", name="string", recorded_at="int64"))
"""From a key to an entity; told apart by type."""

_SAID = {"id": "string", "attested_at": "int64", "episode": "string"}
_SOURCE = {**_SAID, "passage": "string", "quote": "string", "confidence": "double", "recorded_at": "int64"}


def _record(source: dict[str, str], **types: ColumnType) -> tuple[Column, ...]:
    return tuple(Column(name, type) for name, type in (source | types).items())  # type: ignore[arg-type] # dict of literals


CLAIM = Edge(
    "claim",
    _record(
        _SOURCE,
        start_at="int64",
        end_at="int64",
        seen_at="int64",
        start_precision="int64",
        end_precision="int64",
        time_text="string",
    ),
)
ENDING = Edge("ending", _record(_SOURCE, ended_at="int64", precision="int64", reason="int64"))
DENIAL = Edge("denial", _record(_SOURCE, start_at="int64", end_at="int64"))
"""From a statement to the episode that says it; to the statement itself when a user did it by hand."""
VERDICT = Edge(
    "verdict",
    _record(
        _SAID,
        kind="int64",
        judge="int64",
        why="string",
        model="string",
        prompt_version="string",
        recorded_at="int64",
    ),
)
"""From the left statement to the right one."""
JUDGED = Edge("judged", _columns(id="string"))
"""From a verdict's left statement to the verdict's episode."""
REVOCATION = Edge("revocation", _columns(record="string", revoked_at="int64"))
"""From a record's statement (a verdict's left one) to itself."""
SPAN = Edge(
    "span",
    _columns(
        id="string",
        valid_at="int64",
        invalid_at="int64",
        known_from="int64",
        known_to="int64",
        started_by="string",
        ended_by="string",
        contested="bool",
    ),
)
"""From a statement to the record that ended it; to itself while nothing did."""
CLOSING = Edge("closing", _columns(span="string", known_to="int64"))
"""From a statement to itself: one of its spans is believed no more."""

TAGS = (ENTITY, STATEMENT)
JOINS = (HAS_SUBJECT, HAS_PREDICATE, HAS_OBJECT, HAS_PAIR, ON_SHELF, HAS_SHELF)
RECORDS = (CLAIM, ENDING, DENIAL)
"""What an episode says of a statement."""
EDGES = (*JOINS, ALIAS, *RECORDS, VERDICT, JUDGED, REVOCATION, SPAN, CLOSING)
OF_STATEMENT = (*RECORDS, VERDICT, REVOCATION, SPAN, CLOSING)
"""Out-edges that tell all of a statement; verdicts of which it is the right side come in."""
FROM_STATEMENT = (HAS_SUBJECT, HAS_PREDICATE, HAS_OBJECT, HAS_PAIR, *OF_STATEMENT, JUDGED)
"""All its out-edges but the one to its shelf, by which it is found."""
