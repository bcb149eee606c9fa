"""Coarse starts: a fact that began "in June" began after what was still seen in June (docs/adr/0013)."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, Protocol

from services.domain.ids import StatementId
from services.domain.instants import Precision
from services.domain.kernel.periods import Coarse, bounds
from services.domain.kernel.rivals import Rivals
from services.domain.kernel.stays import AFTER, BEFORE, Denied, Stay
from services.domain.records import Claim

_INSTANT: Final = Precision.INSTANT
_UNTIL: Final = itemgetter(1)
_NEAR: Final = 8
"""Sightings that are looked at one by one: of most periods the last one or two decide."""


class Starting(Protocol):
    """The claims of an object as far as their starts go: a Life, or Unended."""

    @property
    def coarse(self) -> Mapping[Coarse, Sequence[Claim]]: ...
    @property
    def said_at(self) -> Sequence[int]: ...
    @property
    def endless(self) -> bool:
        """Whether no stay of the object has an end."""
        ...


class _Beginning(NamedTuple):
    """The claims of one object that name one coarse period as their start; they begin together.

    `by` is the last instant at which that can have been. `vouched`: one of them speaks of a time after the
    period's first instant, not of the beginning alone.
    """

    object: StatementId
    coarse: Coarse
    by: int
    vouched: bool


_Sighting = tuple[int, int, StatementId, bool, bool]
"""(since, until, object, early, late): it began then and held up to `until`, where a rival may have begun.

`early`: in a period that it began before, or nobody knows when; `late`: in one that it began in.
"""


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
    sightings = _sightings(stays, rivals, denied, {rivals.slot(each.object) for each in beginnings})
    for each, until in _last(beginnings, sightings, rivals):
        periods = found.setdefault(each.object, {})
        if until > periods.get(each.coarse, each.coarse.first):
            periods[each.coarse] = until
    return found


def _beginnings(
    lives: Mapping[StatementId, Starting], stays: Mapping[StatementId, Sequence[Stay]]
) -> list[_Beginning]:
    """What may have begun later than its period did; not what was over with its period."""
    found = []
    for object, life in lives.items():
        coarse = life.coarse
        if not coarse:
            continue
        endless, said_at = life.endless, life.said_at
        ends = {} if endless else {stay.record: stay.end for stay in stays[object]}
        for period, claims in coarse.items():
            first, after = period.first, bounds(period.first, period.precision)[1]
            if not endless and any(ends[claim.id] <= after for claim in claims):
                continue
            by, vouched = after - 1, False
            for claim in claims:
                known: int = claim.seen
                if known > first:
                    vouched = True
                else:
                    known = claim.attested_at
                if first <= known < by:
                    by = known
            mention = bisect_left(said_at, first)
            if mention < len(said_at) and said_at[mention] < by:
                by = said_at[mention]
            if by > first:
                found.append(_Beginning(object, period, by, vouched))
    return found


def _sightings(
    stays: Mapping[StatementId, Iterable[Stay]], rivals: Rivals, denied: Denied, slots: set[Hashable]
) -> list[_Sighting]:
    """Each stay held up to its end, and at the last instant of its asserted part.

    A beginning told alone lasts for the period it names where there is room. A stay with a stated end needs
    none made: it holds before others.
    """
    found: list[_Sighting] = []
    slot_of, judged = rivals.slots, rivals.judged
    for object, stays_of in stays.items():
        if slot_of.get(object, object) not in slots and object not in judged:
            continue
        undenied = not denied.any_of(object)
        for stay in stays_of:
            _, _, start, last, end, attested_at, _, stated_end, assumed, precision, _ = stay
            unknown = assumed or precision is None
            since = BEFORE if unknown else start
            late = not (unknown or stated_end)
            if end < AFTER and (undenied or not denied.before(object, attested_at, end)):
                found.append((since, end, object, True, late))
            known = start < last or precision is not None  # else the very start is known from others alone
            if known and last < end and (undenied or _held_at(stay, denied)):
                found.append((since, last + 1, object, True, late))
                if late and last == start and precision is not None and precision is not _INSTANT:
                    found.append((since, bounds(start, precision)[1], object, False, True))
    return found


def _held_at(stay: Stay, denied: Denied) -> bool:
    """Whether no denial takes the last instant of the asserted part."""
    if stay.start < stay.last:
        return not denied.before(stay.object, stay.attested_at, stay.last)
    return bool(denied.left_of(stay.object, stay.attested_at, stay.last, stay.last))


def _last(
    beginnings: Sequence[_Beginning], sightings: list[_Sighting], rivals: Rivals
) -> Iterator[tuple[_Beginning, int]]:
    """The latest sighting of a rival within each period that can have come before the beginning, if any.

    Of several for one period the latest counts.
    """
    left = beginnings
    if not rivals.judged:
        left = []
        for each, until in _near(beginnings, sightings, rivals):
            if until is None:
                left.append(each)
            else:
                yield each, until
    if left:
        early = [(since, until, object) for since, until, object, counts, _ in sightings if counts]
        yield from _far(left, early, rivals, 1)
        late = [(since, until, object) for since, until, object, _, counts in sightings if counts]
        yield from _far([each for each in left if each.vouched], late, rivals, -1)


def _near(
    beginnings: Iterable[_Beginning], sightings: list[_Sighting], rivals: Rivals
) -> Iterator[tuple[_Beginning, int | None]]:
    """As `_last`, by a look at the few sightings just before; None where that does not decide."""
    slot_of, exempt = rivals.slots, rivals.exempt
    of_slot: dict[Hashable, list[_Sighting]] = {}
    for sighting in sorted(sightings, key=_UNTIL):
        object = sighting[2]
        of_slot.setdefault(slot_of.get(object, object), []).append(sighting)
    times = {slot: [sighting[1] for sighting in known] for slot, known in of_slot.items()}
    for each in beginnings:
        object, (first, _), by, vouched = each
        slot = slot_of.get(object, object)
        if slot not in of_slot:
            continue
        known, next_at = of_slot[slot], bisect_right(times[slot], by)
        for at in range(next_at - 1, max(0, next_at - _NEAR) - 1, -1):
            since, until, other, early, late = known[at]
            if until <= first:
                break
            counts = early if since < first else late and vouched and since > first
            if counts and other != object and not (exempt and other in exempt.get(object, ())):
                yield each, until
                break
        else:
            if next_at > _NEAR:
                yield each, None


def _far(
    beginnings: Iterable[_Beginning],
    sightings: Iterable[tuple[int, int, StatementId]],
    rivals: Rivals,
    direction: int,
) -> Iterator[tuple[_Beginning, int]]:
    """As `_last`, however many sightings (since, until, object) there are.

    Of rivals that began before the period (direction 1), or after its first instant (direction -1).
    """
    waiting = sorted(sightings, key=lambda sighting: -direction * sighting[0])
    slot_of, judged = rivals.slots, rivals.judged
    of_slot: dict[Hashable, list[tuple[int, StatementId]]] = {}
    of_object: dict[StatementId, list[tuple[int, StatementId]]] = {}
    for each in sorted(beginnings, key=lambda each: direction * each.coarse.first):
        object, (first, _), by, _ = each
        while waiting and direction * waiting[-1][0] < direction * first:
            _, until, other = waiting.pop()
            slot = slot_of.get(other, other)
            if slot in of_slot:
                insort(of_slot[slot], (until, other))
            else:
                of_slot[slot] = [(until, other)]
            if other in judged:
                insort(of_object.setdefault(other, []), (until, other))
        slot = slot_of.get(object, object)
        latest = _latest(of_slot[slot], object, first, by, rivals) if slot in of_slot else first
        for other in judged.get(object, ()) if judged else ():
            if other in of_object:
                latest = max(latest, _latest(of_object[other], object, first, by, rivals))
        if latest > first:
            yield each, latest


def _latest(
    known: Sequence[tuple[int, StatementId]], object: StatementId, first: int, by: int, rivals: Rivals
) -> int:
    """The latest in `(first, by]` at which a rival had held; `first` where none had."""
    position = bisect_left(known, (by + 1,))
    while position:
        position -= 1
        until, other = known[position]
        if until <= first:
            return first
        if rivals(object, other):
            return until
    return first
