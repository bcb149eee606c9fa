"""The time kernel: what claims, ends and denials say of competing statements, as spans of world time.

Pure, and exactly the five rules of docs/adr/0005-time.md: evidence decides, never the order of arrival.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Instant, Precision
from services.domain.kernel.coarse import begun
from services.domain.kernel.lives import Life
from services.domain.kernel.rivals import Contradicts, Rivals
from services.domain.kernel.stays import AFTER, BEFORE, Denied, Stay
from services.domain.kernel.sweep import Content, Held, Sweep
from services.domain.kernel.unknown import unknown_starts
from services.domain.records import Claim, Denial, End


@dataclass(frozen=True, slots=True)
class DerivedSpan:
    """A statement holds in `[valid_at, invalid_at)`; None is an unknown start, or that it still holds.

    `started_by` is the earliest attested record of this unbroken period; `ended_by` the end or denial that
    counts, or what another statement that took over was `started_by`; None while open. `assumed`: it starts
    where it was said, not where it is known to have begun. The precisions tell how fine a border is known.
    """

    statement: StatementId
    valid_at: Instant | None
    invalid_at: Instant | None
    started_by: RecordId
    ended_by: RecordId | None
    contested: bool = False
    start_precision: Precision = Precision.INSTANT
    end_precision: Precision = Precision.INSTANT
    assumed: bool = False


def timeline(
    claims: Iterable[Claim],
    ends: Iterable[End],
    denials: Iterable[Denial],
    contradicts: Contradicts,
    content: Content = str,
) -> tuple[DerivedSpan, ...]:
    """The spans that follow, earliest first. No two of contradicting statements overlap.

    The records must all count (whoever calls leaves out what is revoked). `content` gives the text of a
    statement's object, by which ties are broken. Cost is near that of sorting the records; with a plain
    function for `contradicts`, one call for each pair of statements comes on top.
    """
    claimed: dict[StatementId, list[Claim]] = {}
    for claim in claims:
        claimed.setdefault(claim.statement, []).append(claim)
    ended: dict[StatementId, list[End]] = {}
    for end in ends:
        ended.setdefault(end.statement, []).append(end)
    denied = Denied(denials)
    objects = [*claimed, *(object for object in ended if object not in claimed)]
    rivals = Rivals.among(objects, contradicts)
    lives = {object: Life(object, claimed.get(object, ()), ended.get(object, ())) for object in objects}
    stays = _stays(lives, rivals, denied)
    later = begun(lives, stays, rivals, denied)
    if later:
        for object, starts in later.items():
            lives[object] = Life(object, claimed[object], ended.get(object, ()), starts)
        stays = _stays(lives, rivals, denied)
    by_object: dict[StatementId, list[Stay]] = {}
    for stay in stays:
        by_object.setdefault(stay.object, []).append(stay)
    spans: list[DerivedSpan] = []
    for group in rivals.groups(by_object):
        together = [stay for object in group for stay in by_object[object]]
        spans += _spans(Sweep(together, denied, rivals, content).run(), together)
    spans.sort(key=lambda span: (_start(span), content(span.statement), span.statement))
    return tuple(spans)


def _stays(lives: Mapping[StatementId, Life], rivals: Rivals, denied: Denied) -> list[Stay]:
    stays = [stay for life in lives.values() for stay in life.settled()]
    if any(life.loose or life.past or life.overruled for life in lives.values()):
        stays += unknown_starts(lives, stays, rivals, denied)
    return stays


def _start(span: DerivedSpan) -> int:
    return BEFORE if span.valid_at is None else span.valid_at


def _spans(held: Iterable[Held], stays: Sequence[Stay]) -> Iterable[DerivedSpan]:
    for each in held:
        struck = each.struck_by
        yield DerivedSpan(
            statement=each.object,
            valid_at=None if each.start == BEFORE else Instant(each.start),
            invalid_at=None if each.end == AFTER else Instant(each.end),
            started_by=stays[each.first].record,
            ended_by=each.ended_by if struck is None else stays[struck.first].record,
            start_precision=each.precision,
            end_precision=each.end_precision if struck is None else struck.precision,
            assumed=each.assumed,
        )
