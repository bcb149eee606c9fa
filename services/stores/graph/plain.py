"""Plain records: statements with all of theirs as tuples, for who keeps a whole graph and shows little of it.

To make an object of every record of a graph, only to pack it again, would be most of what its first question
costs. Enumerations are their values; what is open or not known of a span is a number beyond all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from services.domain.graph import Entity, EntityType, GraphAspect, Literal, LiteralKind, Span, Statement
from services.domain.ids import StatementId
from services.domain.instants import Precision
from services.domain.records import Claim, Denial, End, EndReason, Judge, Record, Source, Verdict, VerdictKind
from services.domain.scope import Scope
from services.stores.graph.port import Alias, GraphStore, Records
from services.stores.paging import Page

# Beyond every instant and revision, so that what is stored is told apart from what is absent.
UNKNOWN_START = -(2**63)
OPEN = 2**63 - 1
"""An open end, in world time and in system time."""

Row = Sequence[Any]
"""A part of it, cut out, is a tuple."""


@dataclass(frozen=True, slots=True)
class PlainRecords:
    """As Records (services/stores/graph/port.py), which see; statements in order, all else in any.

    Statements are (id, subject, predicate, object, literal kind, literal text, fact, aspect, event_at,
    created_at). All others begin with their statement, then have their fields in order; a source is three.
    """

    statements: Sequence[Row] = ()
    claims: Sequence[Row] = ()
    ends: Sequence[Row] = ()
    denials: Sequence[Row] = ()
    verdicts: Sequence[Verdict] = ()
    spans: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class PlainPage:
    """A page of a graph's statements; `after` as of Listed (services/stores/paging.py)."""

    records: PlainRecords
    after: str = ""


@runtime_checkable
class ScansPlain(Protocol):
    """A graph store whose rows are tuples to begin with."""

    async def scan_plain(self, scope: Scope, page: Page) -> PlainPage:
        """See the function of this name."""
        ...


async def scan_plain(graph: GraphStore, scope: Scope, page: Page) -> PlainPage:
    """A page of all statements, in the order of `scan`, each with all of its records, as of one moment.

    Raises ValueError for a position that this store did not give.
    """
    if isinstance(graph, ScansPlain):
        return await graph.scan_plain(scope, page)
    found = await graph.scan(scope, page)
    return PlainPage(plain(await graph.records(scope, found.items)), found.after)


def plain(records: Records) -> PlainRecords:
    """The same as tuples."""
    return PlainRecords(
        statements=[plain_statement(one) for one in records.statements],
        claims=[_claim(one) for one in records.claims],
        ends=[_end(one) for one in records.ends],
        denials=[_denial(one) for one in records.denials],
        verdicts=records.verdicts,
        spans=[_span(one) for one in records.spans],
    )


def plain_statement(one: Statement) -> Row:
    target = one.object
    aspect = None if one.aspect is None else str(one.aspect.value)
    if isinstance(target, Literal):
        what: Row = (None, str(target.kind.value), target.text)
    else:
        what = (target, None, None)
    return one.id, one.subject, one.predicate, *what, one.fact, aspect, one.event_at, one.created_at


def statement_of(row: Row) -> Statement:
    id, subject, predicate, node, kind, text, fact, aspect, event_at, created_at = row
    return Statement(
        id,
        subject,
        predicate,
        Literal(LiteralKind(kind), text) if node is None else node,
        fact,
        None if aspect is None else GraphAspect(aspect),
        event_at,
        created_at,
    )


def claim_of(statement: StatementId, row: Row) -> Claim:
    """Of what stands after the statement; so all others."""
    id, start, end, attested_at, seen, episode, passage, quote, fine, end_fine, *rest = row
    source = Source(episode, passage, quote)
    return Claim(
        id, statement, start, end, attested_at, seen, source, Precision(fine), Precision(end_fine), *rest
    )


def end_of(statement: StatementId, row: Row) -> End:
    id, at, attested_at, episode, passage, quote, fine, reason, *rest = row
    source = Source(episode, passage, quote)
    return End(id, statement, at, attested_at, source, Precision(fine), EndReason(reason), *rest)


def denial_of(statement: StatementId, row: Row) -> Denial:
    id, start, until, attested_at, episode, passage, quote, *rest = row
    return Denial(id, statement, start, until, attested_at, Source(episode, passage, quote), *rest)


def span_of(statement: StatementId, row: Row) -> Span:
    id, valid_at, invalid_at, known_from, known_to, started_by, ended_by, contested, start, end, assumed = row
    return Span(
        id,
        statement,
        None if valid_at == UNKNOWN_START else valid_at,
        None if invalid_at == OPEN else invalid_at,
        known_from,
        None if known_to == OPEN else known_to,
        started_by,
        ended_by,
        contested,
        None if start is None else Precision(start),
        None if end is None else Precision(end),
        assumed,
    )


def plain_entity(one: Entity) -> Row:
    """Its fields in order, as values."""
    return one.id, one.name, one.key, one.type.value, one.aliases, one.created_at


def entity_of(row: Row) -> Entity:
    id, name, key, type, aliases, created_at = row
    return Entity(id, name, key, EntityType(type), aliases, created_at)


def plain_alias(one: Alias) -> Row:
    """Its fields in order, as values."""
    return one.key, one.type.value, one.entity, one.name, one.recorded_at


def alias_of(row: Row) -> Alias:
    key, type, *rest = row
    return Alias(key, EntityType(type), *rest)


def plain_verdict(one: Verdict) -> Row:
    """Its fields in order, as values."""
    sides = one.id, one.left, one.right, one.kind.value, one.judge.value, one.attested_at
    return *sides, one.why, one.model, one.prompt_version, one.episode, *_recorded(one)


def verdict_of(row: Row) -> Verdict:
    id, left, right, kind, judge, *rest = row
    return Verdict(id, left, right, VerdictKind(kind), Judge(judge), *rest)


def starts(span: Span) -> int:
    """When a span begins, as a number."""
    return UNKNOWN_START if span.valid_at is None else span.valid_at


def stops(span: Span) -> int:
    """When a span ends, as a number."""
    return OPEN if span.invalid_at is None else span.invalid_at


def _claim(one: Claim) -> Row:
    times = one.start, one.end, one.attested_at, one.seen
    fine = one.start_precision.value, one.end_precision.value
    return one.statement, one.id, *times, *_source(one), *fine, one.confidence, one.time_text, *_recorded(one)


def _end(one: End) -> Row:
    kinds = one.precision.value, one.reason.value
    when = one.at, one.attested_at
    return one.statement, one.id, *when, *_source(one), *kinds, one.confidence, *_recorded(one)


def _denial(one: Denial) -> Row:
    times = one.start, one.until, one.attested_at
    return one.statement, one.id, *times, *_source(one), one.confidence, *_recorded(one)


def _source(one: Claim | End | Denial) -> Row:
    return one.source.episode, one.source.passage, one.source.quote


def _recorded(one: Record) -> Row:
    return one.recorded_at, one.revoked_at


def _span(one: Span) -> Row:
    return (
        one.statement,
        one.id,
        starts(one),
        stops(one),
        one.known_from,
        OPEN if one.known_to is None else one.known_to,
        one.started_by,
        one.ended_by,
        one.contested,
        _number(one.start_precision),
        _number(one.end_precision),
        one.assumed,
    )


def _number(precision: Precision | None) -> int | None:
    return None if precision is None else precision.value
