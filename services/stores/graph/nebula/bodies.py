"""Bodies: what is told in the store, as values of the domain, and each as one text of JSON, `[kind, fields]`.

Fields are named as in the domain. Their names are stored: to rename one there is to change this format, which
a test pins. Kinds are the names of tags and edge types.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import orjson

from services.domain.graph import Entity, EntityType, GraphAspect, Literal, LiteralKind, Span, Statement
from services.domain.ids import RecordId, Revision, SpanId, StatementId
from services.domain.instants import Precision
from services.domain.records import Claim, Denial, End, EndReason, Judge, Source, Verdict, VerdictKind
from services.domain.scope import Scope
from services.stores.errors import UnstorableText
from services.stores.graph.nebula import layout
from services.stores.graph.nebula.layout import OPEN, UNKNOWN_START, Edge
from services.stores.graph.nebula.statements import EdgeKey
from services.stores.graph.nebula.vids import Kind, key, place_of, vid
from services.stores.graph.port import Alias
from services.stores.storable import is_storable


@dataclass(frozen=True, slots=True)
class Revoked:
    """A record counts no more. `statement`: its own; a verdict's left one."""

    record: RecordId
    statement: StatementId
    revoked_at: Revision


@dataclass(frozen=True, slots=True)
class Closed:
    """A span is believed no more."""

    span: SpanId
    statement: StatementId
    known_to: Revision


@dataclass(frozen=True, slots=True)
class Judged:
    """An episode is the source of a verdict, which is found at its left statement."""

    verdict: RecordId
    left: StatementId
    episode: str


Told = Alias | Claim | End | Denial | Verdict | Judged | Revoked | Span | Closed
"""What an edge says."""
Node = Entity | Statement
"""What a vertex says."""
Sayable = Alias | Claim | End | Denial | Verdict
"""The told things that hold texts."""

_KINDS: dict[type, str] = {
    Entity: layout.ENTITY.name,
    Statement: layout.STATEMENT.name,
    Alias: layout.ALIAS.name,
    Claim: layout.CLAIM.name,
    End: layout.ENDING.name,
    Denial: layout.DENIAL.name,
    Verdict: layout.VERDICT.name,
    Judged: layout.JUDGED.name,
    Revoked: layout.REVOCATION.name,
    Span: layout.SPAN.name,
    Closed: layout.CLOSING.name,
}
_EDGES = {edge.name: edge for edge in layout.EDGES}


def body_of(one: Told | Node) -> str:
    """As it is stored. Its texts must be storable."""
    return orjson.dumps([_KINDS[type(one)], one]).decode()


def check(one: Told | Node) -> None:
    """Raises UnstorableText if a text in it can't be stored. Names the field, never the text."""
    for name, text in _texts("", one):
        if not is_storable(text):
            raise UnstorableText(f"{name} holds NUL or a lone surrogate")


def _texts(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(name, item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(field.name, getattr(value, field.name))


def told(body: str) -> Told:
    """What an edge says."""
    kind, row = orjson.loads(body)
    return _READERS[kind](row)


def entity(body: str) -> Entity:
    row: dict[str, Any] = orjson.loads(body)[1]
    row["type"], row["aliases"] = EntityType(row["type"]), tuple(row["aliases"])
    return Entity(**row)


def statement(body: str) -> Statement:
    row: dict[str, Any] = orjson.loads(body)[1]
    if isinstance(row["object"], dict):
        row["object"] = Literal(LiteralKind(row["object"]["kind"]), row["object"]["text"])
    row["aspect"] = GraphAspect(row["aspect"]) if row["aspect"] is not None else None
    return Statement(**row)


def _alias(row: dict[str, Any]) -> Alias:
    row["type"] = EntityType(row["type"])
    return Alias(**row)


def _claim(row: dict[str, Any]) -> Claim:
    row["source"] = Source(**row["source"])
    row["start_precision"] = Precision(row["start_precision"])
    row["end_precision"] = Precision(row["end_precision"])
    return Claim(**row)


def _end(row: dict[str, Any]) -> End:
    row["source"] = Source(**row["source"])
    row["precision"], row["reason"] = Precision(row["precision"]), EndReason(row["reason"])
    return End(**row)


def _denial(row: dict[str, Any]) -> Denial:
    row["source"] = Source(**row["source"])
    return Denial(**row)


def _verdict(row: dict[str, Any]) -> Verdict:
    row["kind"], row["judge"] = VerdictKind(row["kind"]), Judge(row["judge"])
    return Verdict(**row)


def _span(row: dict[str, Any]) -> Span:
    # Bodies of before lack them.
    for border in ("start_precision", "end_precision"):
        if row.get(border) is not None:
            row[border] = Precision(row[border])
    return Span(**row)


_READERS: dict[str, Callable[[dict[str, Any]], Told]] = {
    layout.ALIAS.name: _alias,
    layout.CLAIM.name: _claim,
    layout.ENDING.name: _end,
    layout.DENIAL.name: _denial,
    layout.VERDICT.name: _verdict,
    layout.JUDGED.name: lambda row: Judged(**row),
    layout.REVOCATION.name: lambda row: Revoked(**row),
    layout.SPAN.name: _span,
    layout.CLOSING.name: lambda row: Closed(**row),
}


def edge_of(one: Told) -> Edge:
    """The type of the edge that says it."""
    return _EDGES[_KINDS[type(one)]]


def key_of(scope: Scope, one: Told) -> EdgeKey:
    """The edge that says it. Raises ValueError for an id that is not of our alphabet."""

    def fact(id: str) -> Any:
        return vid(scope, Kind.STATEMENT, id)

    match one:
        case Alias():
            entity = vid(scope, Kind.ENTITY, one.entity)
            return EdgeKey(key(scope, one.key), entity, place_of(one.type.value))
        case Claim() | End() | Denial():
            episode = one.source.episode
            said_by = fact(one.statement) if episode is None else vid(scope, Kind.EPISODE, episode)
            return EdgeKey(fact(one.statement), said_by, place_of(one.id))
        case Verdict():
            return EdgeKey(fact(one.left), fact(one.right), place_of(one.id))
        case Judged():
            return EdgeKey(fact(one.left), vid(scope, Kind.EPISODE, one.episode), place_of(one.verdict))
        case Revoked():
            return EdgeKey(fact(one.statement), fact(one.statement), place_of(one.record))
        case Span():
            cause = one.ended_by
            ended_by = fact(one.statement) if cause is None else vid(scope, Kind.RECORD, cause)
            return EdgeKey(fact(one.statement), ended_by, place_of(one.id))
        case Closed():
            return EdgeKey(fact(one.statement), fact(one.statement), place_of(one.span))


# What `forget` takes away.


def emptied(node: Node) -> Node:
    """A vertex without its texts; ids, times and revisions stay."""
    if isinstance(node, Entity):
        return replace(node, name="", key="", aliases=())
    target = node.object
    return replace(node, fact="", object=replace(target, text="") if isinstance(target, Literal) else target)


def restored(old: Node, new: Node) -> Node:
    """A vertex with its texts again; all else stays."""
    if isinstance(old, Entity) and isinstance(new, Entity):
        return replace(old, name=new.name, key=new.key, aliases=new.aliases)
    assert isinstance(old, Statement)
    assert isinstance(new, Statement)
    return replace(old, fact=new.fact, object=new.object)


def silent(one: Sayable) -> Sayable:
    """It without its texts; an alias is found by no key then."""
    match one:
        case Alias():
            return replace(one, key="", name="")
        case Claim():
            return replace(one, source=replace(one.source, quote=""), time_text="")
        case End() | Denial():
            return replace(one, source=replace(one.source, quote=""))
        case Verdict():
            return replace(one, why="")


def held(span: Span) -> tuple[int, int]:
    """Its borders as numbers: an unknown start is before, an open end after every instant."""
    return (
        UNKNOWN_START if span.valid_at is None else span.valid_at,
        OPEN if span.invalid_at is None else span.invalid_at,
    )
