"""Coarse starts: a fact that began "in June" began after what was still seen in June (docs/adr/0013)."""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from services.domain.ids import StatementId
from services.domain.instants import Precision
from services.domain.kernel.periods import Coarse, bounds
from services.domain.kernel.rivals import Rivals
from services.domain.kernel.stays import AFTER, BEFORE, Denied, Stay
from services.domain.records import Claim


class Starting(Protocol):
    """The claims of an object as far as their starts go: a Life, or Unended."""

    @property
    def coarse(self) -> Mapping[Coarse, Sequence[Claim]]: ...
    @property
    def said_at(self) -> Sequence[int]: ...


class _Beginning(NamedTuple):
    """The claims of one object that name one coarse period as their start; they begin together.

    `by` is the last instant at which that can have been. `vouched`: one of them speaks of a time after the
    period's first instant, not of the beginning alone.
    """

    object: StatementId
    coarse: Coarse
    by: int
    vouched: bool


class _Sighting(NamedTuple):
    """An object that began at `begun` had held up to `until`, so that a rival may have begun there."""

    begun: int
    until: int
    object: StatementId


def begun(
    lives: Mapping[StatementId, Starting],
    stays: Mapping[StatementId, Sequence[Stay]],
    rivals: Rivals,
    denied: Denied,
) -> dict[StatementId, dict[Coarse, int]]:
    """When stays of coarse start began, where that is later than the first instant of their period.

    `stays` are those of all objects as they are when coarse starts are first instants.
    """
    beginnings = _beginnings(lives, stays)
    found: dict[StatementId, dict[Coarse, int]] = {}
    if not beginnings:
        return found
    early, late = _sightings(stays, rivals, denied, {rivals.slot(each.object) for each in beginnings})
    ahead = sorted(beginnings, key=lambda each: each.coarse.first)
    later = _last(ahead, early, rivals, 1)
    vouched = [each for each in reversed(ahead) if each.vouched]
    for each, until in _last(vouched, late, rivals, -1).items():
        later[each] = max(until, later.get(each, until))
    for each, until in later.items():
        found.setdefault(each.object, {})[each.coarse] = until
    return found


def _beginnings(
    lives: Mapping[StatementId, Starting], stays: Mapping[StatementId, Sequence[Stay]]
) -> list[_Beginning]:
    """What may have begun later than its period did; not what was over with its period."""
    found = []
    for object, life in lives.items():
        ends = {stay.record: stay.end for stay in stays[object]} if life.coarse else {}
        for period, claims in life.coarse.items():
            first, after = period.first, bounds(period.first, period.precision)[1]
            if any(ends[claim.id] <= after for claim in claims):
                continue
            known = [claim.seen if claim.seen > first else claim.attested_at for claim in claims]
            mentions = bisect_left(life.said_at, first)
            by = min(
                [after - 1, *(at for at in known if at >= first), *life.said_at[mentions : mentions + 1]]
            )
            if by > first:
                vouched = any(claim.seen > first for claim in claims)
                found.append(_Beginning(object, period, by, vouched))
    return found


def _sightings(
    stays: Mapping[StatementId, Iterable[Stay]], rivals: Rivals, denied: Denied, slots: set[Hashable]
) -> tuple[list[_Sighting], list[_Sighting]]:
    """For starts in periods that an object began before (or nobody knows when), and for periods it began in.

    It held up to its end, and at the last instant of its asserted part. A beginning told alone lasts for the
    period it names where there is room. A stay with a stated end needs none made: it holds before others.
    """
    early: list[_Sighting] = []
    late: list[_Sighting] = []
    concerned = [
        stay
        for object, stays_of in stays.items()
        if rivals.slot(object) in slots or object in rivals.judged
        for stay in stays_of
    ]
    for stay in concerned:
        object = stay.object
        undenied = not denied.any_of(object)
        held: list[int] = []
        if stay.end < AFTER and (undenied or not denied.before(object, stay.attested_at, stay.end)):
            held.append(stay.end)
        # Of a stay of unknown start the very start is known from others alone.
        known = stay.start < stay.last or stay.start_precision is not None
        seen = known and stay.last < stay.end and (undenied or _held_at(stay, denied))
        if seen:
            held.append(stay.last + 1)
        precision = stay.start_precision
        if stay.assumed or precision is None:
            early += [_Sighting(BEFORE, until, object) for until in held]
            continue
        early += [_Sighting(stay.start, until, object) for until in held]
        if not stay.stated_end:
            late += [_Sighting(stay.start, until, object) for until in held]
            if seen and stay.last == stay.start and precision is not Precision.INSTANT:
                late.append(_Sighting(stay.start, bounds(stay.start, precision)[1], object))
    return early, late


def _held_at(stay: Stay, denied: Denied) -> bool:
    """Whether no denial takes the last instant of the asserted part."""
    if stay.start < stay.last:
        return not denied.before(stay.object, stay.attested_at, stay.last)
    return bool(denied.left_of(stay.object, stay.attested_at, stay.last, stay.last))


def _last(
    beginnings: Sequence[_Beginning], sightings: Iterable[_Sighting], rivals: Rivals, direction: int
) -> dict[_Beginning, int]:
    """The latest sighting of a rival within each period that can have come before the beginning, if any.

    Of rivals that began before the period (direction 1, periods in order of time), or after its first
    instant (direction -1, periods latest first).
    """
    if not beginnings:
        return {}
    waiting = sorted(sightings, key=lambda each: -direction * each[0])
    known: dict[Hashable, list[tuple[int, StatementId]]] = {}
    found: dict[_Beginning, int] = {}
    for each in beginnings:
        first = direction * each.coarse.first
        while waiting and direction * waiting[-1].begun < first:
            _, until, object = waiting.pop()
            insort(known.setdefault(("slot", rivals.slot(object)), []), (until, object))
            if object in rivals.judged:
                insort(known.setdefault(("object", object), []), (until, object))
        judged = [("object", other) for other in rivals.judged.get(each.object, ())]
        latest = each.coarse.first
        for key in (("slot", rivals.slot(each.object)), *judged):
            latest = max(latest, _latest(known.get(key, ()), each, rivals))
        if latest > each.coarse.first:
            found[each] = latest
    return found


def _latest(known: Sequence[tuple[int, StatementId]], each: _Beginning, rivals: Rivals) -> int:
    position = bisect_left(known, (each.by + 1,))
    while position and known[position - 1][0] > each.coarse.first:
        position -= 1
        until, other = known[position]
        if rivals(each.object, other):
            return until
    return each.coarse.first
