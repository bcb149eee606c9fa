"""Lives: one object's records read together. Starts are placed, ends are given to the starts they belong to.

Rules 1, 2 and 5 of the definition of time, as far as they need no other object.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Precision
from services.domain.kernel.periods import NONE_BEGUN, Coarse, bounds, place
from services.domain.kernel.stays import AFTER, BEFORE, Ending, Stay, ending_of, stay_of
from services.domain.records import Claim, End

_attested_at: Final = attrgetter("attested_at")
_INSTANT: Final = Precision.INSTANT


class Life:
    """The starts and ends of one object, and the stays that follow from them alone.

    `begun`: when the stays that began in a coarse period did so, in the light of other objects (coarse.py).
    """

    endless: Final = False

    def __init__(
        self,
        object: StatementId,
        claims: Sequence[Claim],
        ends: Sequence[End],
        begun: Mapping[Coarse, int] = NONE_BEGUN,
    ) -> None:
        self.object = object
        self.past = [claim for claim in claims if claim.start is None and _is_past(claim)]
        """Claims of a stay that was over when they were made and whose start they don't say."""
        past = {claim.id for claim in self.past}
        assumed = [claim for claim in claims if claim.start is None and claim.id not in past]
        self.said_at = sorted({claim.attested_at for claim in assumed})
        """When the object was said to hold, with no word of since when."""
        placed = place([claim for claim in claims if claim.start is not None], begun)
        self._claims = [_Placed(claim, claim.attested_at, Precision.INSTANT, True) for claim in assumed]
        for claim, start, precision, coarse in placed:
            own = None if claim.end is None else _own_end(claim, self.said_at, start)
            if own is None or start <= own:  # a stay that ends before it starts says nothing
                self._claims.append(_Placed(claim, start, precision, False, own, coarse))
        self.coarse: dict[Coarse, list[Claim]] = {}
        """The claims that name a coarse start, by its period."""
        for each in self._claims:
            if each.coarse is not None:
                self.coarse.setdefault(each.coarse, []).append(each.claim)
        self.starts = sorted({placed.start for placed in self._claims})
        for unplaced in self._claims[: len(assumed)]:
            unplaced.own_end = _own_end(unplaced.claim, self.starts)
        self._past_ends = {claim.id: _own_end(claim, self.starts) for claim in self.past}
        self._read_ends(ends)
        self.overruled: list[tuple[Claim, Ending | None]] = []
        """Claims without start that an end lies before: they are of a stay that had ended by then.

        With the earliest end of that stay that belongs to a start, if one does.
        """

    def _read_ends(self, ends: Iterable[End]) -> None:
        known: list[Ending] = []
        for end in ends:
            at = _coarse_end(end.at, end.precision, self.starts)
            known.append(ending_of((at, end.attested_at, end.precision, end.id, False, None)))
        bounded = [placed for placed in self._claims if placed.own_end is not None]
        opened = {placed.start: AFTER for placed in bounded if not placed.assumed}
        for placed in self._claims if opened else ():
            if placed.own_end is None and not placed.assumed and placed.start in opened:
                opened[placed.start] = min(placed.claim.attested_at, opened[placed.start])
        for placed in bounded:
            assert placed.own_end is not None
            told_open = None if placed.assumed else opened[placed.start]
            known.append(_ending_of(placed.claim, placed.own_end, told_open))
        for claim in self.past:
            known.append(_ending_of(claim, self.own_end(claim)))
        self._alike: dict[int, list[Ending]] = {}
        by_start: dict[int, list[Ending]] = {}
        self.loose: list[Ending] = []
        """Ends that belong to no start."""
        for ending in known:
            self._alike.setdefault(ending.at, []).append(ending)
            start = self.start_of(ending.at)
            (self.loose if start is None else by_start.setdefault(start, [])).append(ending)
        for alike in self._alike.values():
            if len(alike) > 1:
                alike.sort(key=lambda ending: (ending.attested_at, ending.precision, ending.record))
        self.counting = {start: counting_end(endings) for start, endings in by_start.items()}
        """Of each start, the end that counts."""
        self._news = [
            (*self._news_to(endings), self.counting[start])
            for start, endings in (by_start.items() if self.said_at else ())
        ]
        self.loose_news = self._news_to(self.loose)[1] if self.loose else BEFORE
        """Claims without start that were made no later are ended by an end that belongs to no start."""

    def _news_to(self, endings: Sequence[Ending]) -> tuple[int, int]:
        """When a claim without start must have been made for these ends, which lie before it, to end it.

        It spoke of a stay not known to be over. An end told before it, repeated later, is no news. Nor is a
        stay told whole, unless it is one that was known to have begun and not to have ended.
        """
        if len(endings) == 1 and endings[0].opened is None:
            return BEFORE, self._alike[endings[0].at][0].attested_at
        plain = [self._alike[ending.at][0].attested_at for ending in endings if ending.opened is None]
        if plain:
            return BEFORE, max(plain)
        opened = min(ending.opened for ending in endings if ending.opened is not None)
        return opened, min(ending.attested_at for ending in endings)

    def own_end(self, claim: Claim) -> int:
        """The end that a claim of `past` states."""
        end = self._past_ends[claim.id]
        assert end is not None, "a past claim states its end"
        return end

    def start_of(self, at: int) -> int | None:
        """The object's last start at or before an instant."""
        position = bisect_right(self.starts, at)
        return self.starts[position - 1] if position else None

    def cause(self, ending: Ending, attested_at: int) -> Ending:
        """The earliest attested end at the same instant that can end a claim of `attested_at`."""
        alike = self._alike[ending.at]
        first = bisect_left(alike, attested_at, key=_attested_at) if len(alike) > 1 else 0
        return alike[first if first < len(alike) else 0]

    def alike(self, ending: Ending) -> Sequence[Ending]:
        """All ends at the same instant, earliest attested first."""
        return self._alike[ending.at]

    def settled(self) -> list[Stay]:
        """The stays of claims with a known start. Claims that turn out to have none go to `overruled`."""
        self.overruled = []
        counting = list(self.counting.values())
        if not counting and not self.loose:
            return [self._stay(placed, None) for placed in self._claims]
        attested = [placed.claim.attested_at for placed in self._claims]
        found = earliest_ends(counting, attested, [placed.start for placed in self._claims])
        narrated = self._narrated_ends(counting)
        ended = self._ended_before()
        stays: list[Stay] = []
        for placed, ending in zip(self._claims, found, strict=True):
            claim = placed.claim
            if placed.assumed:
                earliest = ended.get(claim.id, ending)
                over = earliest is not None and earliest.at <= claim.attested_at
                if over or self.loose_news >= claim.attested_at:
                    self.overruled.append((claim, earliest))
                    continue
            elif claim.id in narrated:
                later = narrated[claim.id]
                ending = later if ending is None else min(ending, later, key=lambda each: each.at)
            if ending is None and placed.own_end is not None:
                ending = _ending_of(claim, placed.own_end)
            stays.append(self._stay(placed, ending))
        return stays

    def _narrated_ends(self, counting: Sequence[Ending]) -> dict[RecordId, Ending]:
        """What narrates a beginning vouches for nothing after `seen`: an end there stands, whenever said."""
        narrating = [
            (placed.claim, max(placed.start, placed.claim.seen))
            for placed in self._claims
            if not placed.assumed and placed.claim.seen < placed.claim.attested_at
        ]
        found = earliest_ends(counting, [BEFORE] * len(narrating), [at for _, at in narrating])
        return {claim.id: end for (claim, _), end in zip(narrating, found, strict=True) if end is not None}

    def _ended_before(self) -> dict[RecordId, Ending]:
        """For claims without start the earliest counting end, before each was made, of its stay."""
        found: dict[RecordId, Ending] = {}
        waiting = sorted(self._news, key=lambda item: item[0], reverse=True)
        earliest: list[tuple[int, int, Ending]] = []
        claims = [placed.claim for placed in self._claims if placed.assumed]
        for claim in sorted(claims, key=lambda claim: claim.attested_at):
            while waiting and waiting[-1][0] <= claim.attested_at:
                _, until, ending = waiting.pop()
                heappush(earliest, (ending.at, until, ending))
            while earliest and earliest[0][1] < claim.attested_at:
                heappop(earliest)
            if earliest and earliest[0][0] < claim.attested_at:
                found[claim.id] = earliest[0][2]
        return found

    def _stay(self, placed: "_Placed", ending: Ending | None) -> Stay:
        claim, start, own = placed.claim, placed.start, placed.own_end
        attested_at, seen = claim.attested_at, claim.seen
        last = seen if seen > start else start
        if own is not None and own < last:
            last = own
        end = AFTER
        if ending is not None:
            end = ending.at
            if end < last:
                last = end
            if len(self._alike[end]) > 1:
                ending = self.cause(ending, attested_at)
        return stay_of(
            (
                claim.id,
                self.object,
                start,
                last,
                end,
                attested_at,
                seen,
                own is not None,
                placed.assumed,
                placed.precision,
                ending,
            )
        )


class _Placed:
    """A claim with the instants that its times mean."""

    __slots__ = ("assumed", "claim", "coarse", "own_end", "precision", "start")

    def __init__(
        self,
        claim: Claim,
        start: int,
        precision: Precision,
        assumed: bool,
        own_end: int | None = None,
        coarse: Coarse | None = None,
    ) -> None:
        self.claim = claim
        self.start = start
        self.precision = precision
        self.assumed = assumed
        self.own_end = own_end
        self.coarse = coarse


def counting_end(endings: Sequence[Ending]) -> Ending:
    """Of several ends of one stay the one attested last; then the finer, then the later."""
    if len(endings) == 1:
        return endings[0]
    return max(endings, key=lambda ending: (ending.attested_at, -ending.precision, ending.at))


def earliest_ends(
    counting: Iterable[Ending], attested: Sequence[int], instants: Sequence[int]
) -> list[Ending | None]:
    """For each pair of these the earliest end attested no earlier that lies at or after the instant.

    No two of the ends lie at one instant.
    """
    found: list[Ending | None] = [None] * len(attested)
    waiting = sorted(counting, key=_attested_at)
    if not waiting:
        return found
    at_instant = {ending.at: ending for ending in waiting}
    known: list[int] = []
    next_attested = waiting[-1].attested_at
    for position in sorted(range(len(attested)), key=attested.__getitem__, reverse=True):
        while next_attested >= attested[position]:
            insort(known, waiting.pop().at)
            next_attested = waiting[-1].attested_at if waiting else BEFORE - 1
        first = bisect_left(known, instants[position])
        if first < len(known):
            found[position] = at_instant[known[first]]
    return found


def _ending_of(claim: Claim, end: int, opened: int | None = None) -> Ending:
    return ending_of((end, claim.attested_at, claim.end_precision, claim.id, True, opened))


def _is_past(claim: Claim) -> bool:
    """Whether a claim without start states an end that lies before its telling."""
    if claim.end is None:
        return False
    if claim.end_precision is _INSTANT:
        return claim.end <= claim.attested_at
    return bounds(claim.end, claim.end_precision)[1] <= claim.attested_at


def _any_within(instants: Sequence[int], first: int, after: int) -> bool:
    position = bisect_left(instants, first)
    return position < len(instants) and instants[position] < after


def _coarse_end(at: int, precision: Precision, starts: Sequence[int]) -> int:
    """A coarse end is its period's first instant, or its last where the object began inside."""
    if precision is _INSTANT:
        return at
    first, after = bounds(at, precision)
    return after if _any_within(starts, first, after) else first


def _own_end(claim: Claim, starts: Sequence[int], start: int | None = None) -> int | None:
    """The instant a claim's stated end means, given its start or the starts that may lie in its period."""
    if claim.end is None:
        return None
    if claim.end_precision is _INSTANT:
        return claim.end
    if start is not None:
        first, after = bounds(claim.end, claim.end_precision)
        if first <= start < after:
            return after
    return _coarse_end(claim.end, claim.end_precision, starts)
