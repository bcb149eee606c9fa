"""Beliefs: system time. What follows from records as known at a revision, and how spans change with it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from services.domain.graph import Span, Statement, span_id
from services.domain.ids import RecordId, Revision, StatementId
from services.domain.instants import Instant, Interval, Precision
from services.domain.records import Claim, Denial, End, Evidence, Verdict
from services.domain.scope import Scope
from services.domain.slots import AS_WRITTEN, CardinalityOf, Reading, competition, flagged
from services.domain.timeline import DerivedSpan, timeline
from services.domain.withdrawn import counting_ends


class _Record(Protocol):
    @property
    def recorded_at(self) -> Revision: ...
    @property
    def revoked_at(self) -> Revision | None: ...


class Records(Protocol):
    """All records of a slot closure: see SlotRecords."""

    @property
    def statements(self) -> Sequence[Statement]: ...
    @property
    def claims(self) -> Sequence[Claim]: ...
    @property
    def ends(self) -> Sequence[End]: ...
    @property
    def denials(self) -> Sequence[Denial]: ...
    @property
    def verdicts(self) -> Sequence[Verdict]: ...


@dataclass(frozen=True, slots=True)
class SlotRecords:
    """Everything that the spans of some statements depend on, revoked records and past beliefs included.

    A closure: for a SINGLE predicate all statements of (subject, predicate), whatever unrevoked verdicts
    connect with those, over predicates too, and so on (`closures` in slots.py tells closures apart).
    """

    statements: tuple[Statement, ...] = ()
    claims: tuple[Claim, ...] = ()
    ends: tuple[End, ...] = ()
    denials: tuple[Denial, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class BeliefChanges:
    """Spans to insert, and spans to close at the same revision."""

    opened: tuple[Span, ...] = ()
    closed: tuple[Span, ...] = ()


T = TypeVar("T", bound=_Record)
R = TypeVar("R", Claim, End, Denial)


def in_force(records: Iterable[T], known_at: Revision | None = None) -> list[T]:
    """The records that count as known at a revision; None is now: all that isn't revoked."""
    if known_at is None:
        return [record for record in records if record.revoked_at is None]
    return [
        record
        for record in records
        if record.recorded_at <= known_at and (record.revoked_at is None or known_at < record.revoked_at)
    ]


def said_in_force(records: Records, known_at: Revision | None = None) -> list[Evidence]:
    """The claims, ends and denials that count as known at a revision."""
    said: list[Evidence] = [*records.claims, *records.ends, *records.denials]
    return in_force(said, known_at)


def derive(
    records: Records,
    cardinality: CardinalityOf,
    *,
    known_at: Revision | None = None,
    reading: Reading = AS_WRITTEN,
) -> tuple[DerivedSpan, ...]:
    """The spans that follow from the records of one or more whole closures, as known at `known_at`.

    None is now. Spans of statements that derive as one are spans of the one that is shown.
    """
    claims = in_force(records.claims, known_at)
    verdicts = in_force(records.verdicts, known_at)
    among = competition(records.statements, said_in_force(records, known_at), verdicts, cardinality, reading)

    as_one = {id: shown for id, shown in among.shown.items() if shown != id}

    def shown(records: list[R]) -> list[R]:
        if not as_one:
            return records
        return [
            record if record.statement not in as_one else replace(record, statement=as_one[record.statement])
            for record in records
        ]

    said = shown(claims)
    spans = timeline(
        said,
        counting_ends(said, shown(in_force(records.ends, known_at))),
        shown(in_force(records.denials, known_at)),
        among.rivals,
        among.content,
    )
    return flagged(spans, among)


def believed(spans: Iterable[Span], known_at: Revision) -> list[Span]:
    """The spans that were believed at a revision, in the order given."""
    return [
        span
        for span in spans
        if span.known_from <= known_at and (span.known_to is None or known_at < span.known_to)
    ]


def changes(
    scope: Scope, revision: Revision, spans: Iterable[Span], derived: Iterable[DerivedSpan]
) -> BeliefChanges:
    """What a revision must write so that the derived spans are believed from it on.

    `spans` are those of the same closure, past ones welcome. What an earlier attempt at the same revision
    wrote is not counted, so that a replay answers the same. A span that stays as it is, is left alone.
    """
    before = {said_by(span): span for span in believed(spans, Revision(revision - 1))}
    after = [_span(scope, revision, each) for each in derived]
    kept = before.keys() & {said_by(span) for span in after}
    return BeliefChanges(
        opened=tuple(span for span in after if said_by(span) not in kept),
        closed=tuple(span for said, span in before.items() if said not in kept),
    )


def hull(spans: Iterable[Span]) -> Interval | None:
    """The least interval that covers all spans; None when there are none."""
    starts: list[Instant | None] = []
    ends: list[Instant | None] = []
    for span in spans:
        starts.append(span.valid_at)
        ends.append(span.invalid_at)
    if not starts:
        return None
    return Interval(
        None if None in starts else min(start for start in starts if start is not None),
        None if None in ends else max(end for end in ends if end is not None),
    )


Said = tuple[
    StatementId,
    Instant | None,
    Instant | None,
    RecordId,
    RecordId | None,
    bool,
    Precision | None,
    Precision | None,
    bool | None,
]


def said_by(span: Span | DerivedSpan) -> Said:
    """What a span says, without when it was believed. How fine its borders are is part of it: it is shown."""
    return (
        span.statement,
        span.valid_at,
        span.invalid_at,
        span.started_by,
        span.ended_by,
        span.contested,
        span.start_precision,
        span.end_precision,
        span.assumed,
    )


def _span(scope: Scope, revision: Revision, derived: DerivedSpan) -> Span:
    return Span(
        id=span_id(scope, derived.statement, derived.valid_at, revision),
        statement=derived.statement,
        valid_at=derived.valid_at,
        invalid_at=derived.invalid_at,
        known_from=revision,
        known_to=None,
        started_by=derived.started_by,
        ended_by=derived.ended_by,
        contested=derived.contested,
        start_precision=derived.start_precision,
        end_precision=derived.end_precision,
        assumed=derived.assumed,
    )
