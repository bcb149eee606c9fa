"""Packing: what one statement has, as bytes that are unpacked when it is shown; objects take far more.

Statements, spans and sources of claims are in one piece, since every view needs them; records in another.
"""

import marshal
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NewType, TypeVar

from services.domain.graph import GraphAspect, Literal, LiteralKind, Span, Statement
from services.domain.ids import EntityId, EpisodeId, Revision, StatementId
from services.domain.instants import Instant, Precision
from services.domain.records import Claim, Denial, End, EndReason, Source, Verdict
from services.stores.graph.port import Records, StatementView

Packed = NewType("Packed", bytes)
Nodes = tuple[EntityId, EntityId, EntityId | None]
"""Subject, predicate, and the object where it is a node."""

OPEN = 2**63 - 1
UNKNOWN_START = -(2**63)
"""As the SQL store has them: what an end or a start that is not known compares as."""

R = TypeVar("R", Claim, End, Denial)


@dataclass(frozen=True, slots=True)
class Told:
    """What a view is made of. `sources`: (episode, recorded_at, revoked_at) of claims, earliest first."""

    statement: Statement
    spans: Sequence[Span]
    sources: Sequence[tuple[EpisodeId, Revision, Revision | None]]

    def believed(self, known_at: Revision) -> tuple[Span, ...]:
        """The spans that count in `known_at`, earliest first."""
        spans = [
            span
            for span in self.spans
            if span.known_from <= known_at and (span.known_to is None or span.known_to > known_at)
        ]
        if len(spans) > 1:
            spans.sort(key=lambda span: (starts(span), stops(span), span.id))
        return tuple(spans)

    def episodes(self, known_at: Revision) -> tuple[EpisodeId, ...]:
        """Whose claims count in `known_at`, each once."""
        counting = [
            episode
            for episode, recorded, revoked in self.sources
            if recorded <= known_at and (revoked is None or revoked > known_at)
        ]
        return tuple(dict.fromkeys(counting))


@dataclass(frozen=True, slots=True)
class Pieces:
    """A statement packed."""

    told: Packed
    records: Packed


def packed(records: Records) -> dict[StatementId, Pieces]:
    """Each statement of some records with all that is its own; verdicts, which are of two, are left out."""
    claims, ends = _by_statement(records.claims), _by_statement(records.ends)
    denials = _by_statement(records.denials)
    spans: dict[StatementId, list[Span]] = defaultdict(list)
    for span in records.spans:
        spans[span.statement].append(span)
    return {
        one.id: Pieces(
            pack((*_statement(one), [_span(span) for span in spans[one.id]], _sources(claims[one.id]))),
            pack(
                (
                    [_claim(claim) for claim in claims[one.id]],
                    [_end(end) for end in ends[one.id]],
                    [_denial(denial) for denial in denials[one.id]],
                )
            ),
        )
        for one in records.statements
    }


def told(id: StatementId, nodes: Nodes, piece: Packed) -> Told:
    """What `packed` made `told` of; which nodes a statement names is told by its arrays."""
    subject, predicate, node = nodes
    kind, text, fact, aspect, event_at, created_at, spans, sources = unpacked(piece)
    return Told(
        Statement(
            id,
            subject,
            predicate,
            Literal(LiteralKind(kind), text) if node is None else node,
            fact,
            None if aspect is None else GraphAspect(aspect),
            event_at,
            created_at,
        ),
        [_span_of(id, span) for span in spans],
        sources,
    )


def records_of(id: StatementId, piece: Packed) -> tuple[list[Claim], list[End], list[Denial]]:
    """What `packed` made `records` of."""
    claims, ends, denials = unpacked(piece)
    return (
        [_claim_of(id, row) for row in claims],
        [_end_of(id, row) for row in ends],
        [_denial_of(id, row) for row in denials],
    )


def age(one: Statement) -> tuple[int, str]:
    """Statements are in this order."""
    return one.created_at, one.id


def recorded(one: Claim | End | Denial | Verdict) -> tuple[int, str]:
    """Records are in this order."""
    return one.recorded_at, one.id


def belief(span: Span) -> tuple[int, int, str]:
    """Spans are in this order."""
    return span.known_from, starts(span), span.id


def starts(span: Span) -> int:
    return UNKNOWN_START if span.valid_at is None else span.valid_at


def stops(span: Span) -> int:
    return OPEN if span.invalid_at is None else span.invalid_at


def cut(view: StatementView, before: int, after: int) -> StatementView:
    """The view with those of its spans alone that start before the one and stop after the other."""
    spans = [span for span in view.spans if starts(span) < before and stops(span) > after]
    return view if len(spans) == len(view.spans) else replace(view, spans=tuple(spans))


def pack(values: tuple[Any, ...]) -> Packed:
    """Texts, numbers and tuples or lists of them, as bytes of this process."""
    return Packed(marshal.dumps(values))


def unpacked(piece: Packed) -> Any:
    """What `pack` was given."""
    return marshal.loads(piece)  # noqa: S302 - made by `pack`, in this process's own memory


def _by_statement(records: Iterable[R]) -> dict[StatementId, list[R]]:
    found: dict[StatementId, list[R]] = defaultdict(list)
    for record in records:
        found[record.statement].append(record)
    return found


def _statement(one: Statement) -> tuple[Any, ...]:
    target = one.object
    kind, text = (str(target.kind.value), target.text) if isinstance(target, Literal) else (None, None)
    aspect = None if one.aspect is None else str(one.aspect.value)
    return kind, text, one.fact, aspect, one.event_at, one.created_at


def _sources(claims: Iterable[Claim]) -> list[tuple[EpisodeId, Revision, Revision | None]]:
    told = [claim for claim in claims if claim.source.episode is not None]
    told.sort(key=lambda claim: (claim.attested_at, claim.source.episode))
    return [(EpisodeId(one.source.episode or ""), one.recorded_at, one.revoked_at) for one in told]


def _span(span: Span) -> tuple[Any, ...]:
    return (
        span.id,
        span.valid_at,
        span.invalid_at,
        span.known_from,
        span.known_to,
        span.started_by,
        span.ended_by,
        span.contested,
        _number(span.start_precision),
        _number(span.end_precision),
        span.assumed,
    )


def _span_of(statement: StatementId, row: tuple[Any, ...]) -> Span:
    id, valid_at, invalid_at, known_from, known_to, started_by, ended_by, contested, start, end, assumed = row
    return Span(
        id,
        statement,
        valid_at,
        invalid_at,
        known_from,
        known_to,
        started_by,
        ended_by,
        contested,
        None if start is None else Precision(start),
        None if end is None else Precision(end),
        assumed,
    )


def _number(precision: Precision | None) -> int | None:
    return None if precision is None else precision.value


def _claim(one: Claim) -> tuple[Any, ...]:
    times = one.start, one.end, one.attested_at, one.seen
    fine = one.start_precision.value, one.end_precision.value
    return (
        one.id,
        *times,
        *_source(one),
        *fine,
        one.confidence,
        one.time_text,
        one.recorded_at,
        one.revoked_at,
    )


def _claim_of(statement: StatementId, row: tuple[Any, ...]) -> Claim:
    id, start, end, attested_at, seen, episode, passage, quote, fine, end_fine, *rest = row
    return Claim(
        id,
        statement,
        start,
        end,
        attested_at,
        seen,
        Source(episode, passage, quote),
        Precision(fine),
        Precision(end_fine),
        *rest,
    )


def _end(one: End) -> tuple[Any, ...]:
    kinds = one.precision.value, one.reason.value
    return (
        one.id,
        one.at,
        one.attested_at,
        *_source(one),
        *kinds,
        one.confidence,
        one.recorded_at,
        one.revoked_at,
    )


def _end_of(statement: StatementId, row: tuple[Any, ...]) -> End:
    id, at, attested_at, episode, passage, quote, fine, reason, *rest = row
    source = Source(episode, passage, quote)
    return End(id, statement, at, attested_at, source, Precision(fine), EndReason(reason), *rest)


def _denial(one: Denial) -> tuple[Any, ...]:
    times = one.start, one.until, one.attested_at
    return one.id, *times, *_source(one), one.confidence, one.recorded_at, one.revoked_at


def _denial_of(statement: StatementId, row: tuple[Any, ...]) -> Denial:
    id, start, until, attested_at, episode, passage, quote, *rest = row
    return Denial(id, statement, start, until, attested_at, Source(episode, passage, quote), *rest)


def _source(one: Claim | End | Denial) -> tuple[Any, ...]:
    return one.source.episode, one.source.passage, one.source.quote


def nodes_of(statement: Statement) -> Nodes:
    target = statement.object
    return statement.subject, statement.predicate, None if isinstance(target, Literal) else target


def within(at_valid: Instant | None, since: Instant | None, until: Instant | None) -> tuple[int, int]:
    """(before, after): a span is seen that starts before the one and ends after the other."""
    begins = [OPEN if until is None else until]
    ends = [UNKNOWN_START if since is None else since]
    if at_valid is not None:
        begins.append(at_valid + 1)
        ends.append(at_valid)
    return min(begins), max(ends)
