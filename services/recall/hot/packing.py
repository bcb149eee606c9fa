"""Packing: what one statement has, as bytes that are unpacked when it is shown; objects take far more.

Statements, spans and sources of claims are in one piece, since every view needs them; records in another.
"""

import marshal
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NewType

from services.domain.graph import Literal, Span, Statement
from services.domain.ids import EntityId, EpisodeId, Revision, StatementId
from services.domain.instants import Instant
from services.domain.records import Claim, Denial, End, Verdict
from services.stores.graph.plain import (
    OPEN,
    UNKNOWN_START,
    PlainRecords,
    Row,
    claim_of,
    denial_of,
    end_of,
    span_of,
    starts,
    statement_of,
    stops,
)
from services.stores.graph.port import StatementView

Packed = NewType("Packed", bytes)
Pieces = tuple[Packed, Packed]
"""What is told of a statement, and its records."""
Nodes = tuple[EntityId, EntityId, EntityId | None]
"""Subject, predicate, and the object where it is a node."""

_VERSION = 2
"""Later ones look for what is there twice, and seldom find it: a third more time for a tenth less memory."""
_ATTESTED_AT, _EPISODE, _RECORDED_AT, _REVOKED_AT = 3, 5, 12, 13
"""Where a claim has them, its statement left out."""


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


def packed(records: PlainRecords) -> dict[StatementId, Pieces]:
    """Each statement with all that is its own; verdicts, which are of two, are left out."""
    claims, ends = _by_statement(records.claims), _by_statement(records.ends)
    denials, spans = _by_statement(records.denials), _by_statement(records.spans)
    pieces: dict[StatementId, Pieces] = {}
    for one in records.statements:
        id = one[0]
        said = claims.get(id, ())
        told = pack((one[4:], spans.get(id, ()), _sources(said)))
        pieces[id] = told, pack((said, ends.get(id, ()), denials.get(id, ())))
    return pieces


def told(id: StatementId, nodes: Nodes, piece: Packed) -> Told:
    """What `packed` made `told` of; which nodes a statement names is told by its arrays."""
    statement, spans, sources = unpacked(piece)
    return Told(statement_of((id, *nodes, *statement)), [span_of(id, span) for span in spans], sources)


def records_of(id: StatementId, piece: Packed) -> tuple[list[Claim], list[End], list[Denial]]:
    """What `packed` made `records` of."""
    claims, ends, denials = unpacked(piece)
    return (
        [claim_of(id, row) for row in claims],
        [end_of(id, row) for row in ends],
        [denial_of(id, row) for row in denials],
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


def cut(view: StatementView, before: int, after: int) -> StatementView:
    """The view with those of its spans alone that start before the one and stop after the other."""
    spans = [span for span in view.spans if starts(span) < before and stops(span) > after]
    return view if len(spans) == len(view.spans) else replace(view, spans=tuple(spans))


def pack(values: tuple[Any, ...]) -> Packed:
    """Texts, numbers and tuples or lists of them, as bytes of this process."""
    return Packed(marshal.dumps(values, _VERSION))


def unpacked(piece: Packed) -> Any:
    """What `pack` was given."""
    return marshal.loads(piece)  # noqa: S302 - made by `pack`, in this process's own memory


def _by_statement(rows: Iterable[Row]) -> dict[StatementId, list[Row]]:
    """What stands after the statement, by that."""
    found: dict[StatementId, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[0]].append(row[1:])
    return found


def _sources(claims: Sequence[Row]) -> list[tuple[EpisodeId, Revision, Revision | None]]:
    told = [claim for claim in claims if claim[_EPISODE] is not None]
    if len(told) > 1:
        told.sort(key=itemgetter(_ATTESTED_AT, _EPISODE))
    return [(one[_EPISODE], one[_RECORDED_AT], one[_REVOKED_AT]) for one in told]


def nodes_of(statement: Statement) -> Nodes:
    target = statement.object
    return statement.subject, statement.predicate, None if isinstance(target, Literal) else target


def seen_between(at_valid: Instant | None, since: Instant | None, until: Instant | None) -> tuple[int, int]:
    """(before, after): a span is seen that starts before the one and ends after the other."""
    begins = [OPEN if until is None else until]
    ends = [UNKNOWN_START if since is None else since]
    if at_valid is not None:
        begins.append(at_valid + 1)
        ends.append(at_valid)
    return min(begins), max(ends)
