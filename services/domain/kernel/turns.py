"""Turns: which of many objects holds at each instant when each contradicts all others (rules 2 to 4).

It answers as the sweep, which knows every relation; but in a slot one object holds at a time, and may have
thousands of records. Stays are numbered in the order of their attestation (then start, text, end, seen), so
that one integer ranks a stay in a heap, and the least of those that hold is the cause.
"""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import groupby
from operator import attrgetter
from typing import Final

from services.domain.ids import StatementId
from services.domain.kernel.held import Held
from services.domain.kernel.stays import AFTER, BEFORE, Content, Denied, Stay

_START: Final = attrgetter("start")
_ATTESTED_AT: Final = attrgetter("attested_at")
_ATTESTED_AND_START: Final = attrgetter("attested_at", "start")
_UNBEGUN = BEFORE + 1
_NOBODY = BEFORE - 1
_NONE: Sequence[int] = ()


class _Lane:
    """What is kept of an object with several stays: lists of integers."""

    __slots__ = ("earliest", "latest", "waiting")

    def __init__(self) -> None:
        self.latest: list[int] = []
        """(start, stay) of those that go on, in order."""
        self.earliest: list[int] = []
        """A heap of the same, by number: that is, by attestation."""
        self.waiting: list[int] = []
        """A heap of (start, stay) of those that only persist and have not lapsed."""


class Turns:
    """One use: `run`. `content` gives an object's text, by which ties are broken."""

    def __init__(self, stays: Sequence[Stay], denied: Denied, content: Content) -> None:
        self._stays = _by_attestation([stay for stay in stays if stay.start < stay.end], content)
        """By their numbers; `first` of what is held is one."""
        self._denied = denied
        self._count = max(1, len(self._stays))
        numbers: dict[StatementId, int] = {}
        self._of = [numbers.setdefault(stay.object, len(numbers)) for stay in self._stays]
        """The object of each stay, by number."""
        self._objects = max(1, len(numbers))
        self._starts = [stay.start for stay in self._stays]
        self._turns = [stay.last for stay in self._stays]
        """When each only persists."""
        self._lives = [stay.end for stay in self._stays]
        """Until when what has begun of a stay goes on; BEFORE once it has lapsed."""
        self._lasts = list(self._turns)
        """The same of its asserted part."""
        self._bounded = [-self._count if stay.stated_end else 0 for stay in self._stays]
        self._over: dict[int, list[int]] = {}
        """By instant, the stays that are over there or denied from there on."""
        self._pieces: list[tuple[int, int, int, bool]] = [(AFTER, 0, 0, False)]
        """What denials leave of the stays they cut: (start, stay, end, asserted), latest first."""
        self._cut = self._cut_by_denials()
        whole = (at for at in range(len(self._stays)) if at not in self._cut)
        self._starting = _latest_first(self._starts, whole)
        self._turning = _latest_first(
            self._turns, (at for at, stay in enumerate(self._stays) if stay.last < stay.end)
        )
        self._asserted: list[int] = []
        """A heap by rank: the stay, above all others if it states an end."""
        self._persisting: list[int] = []
        """(end of the asserted part, stay), in order: the last is of best rank."""
        several = (of for of, stays in Counter(self._of).items() if stays > 1)
        self._lanes = {of: _Lane() for of in several}
        self._only = dict(zip(self._of, range(len(self._stays)), strict=True))
        """The stay of each object without a lane."""
        self._due: list[int] = []
        """(start, object) of the first that waits of each object but the one that holds."""
        self._holder = -1
        self._held: Held | None = None
        self._done: list[Held] = []

    def _cut_by_denials(self) -> set[int]:
        cut: set[int] = set()
        for number, stay in enumerate(self._stays):
            if not self._denied.cuts(stay):
                if stay.end < AFTER:
                    self._over.setdefault(stay.end, []).append(number)
                continue
            object, attested_at = stay.object, stay.attested_at
            cut.add(number)
            self._lives[number] = self._lasts[number] = _UNBEGUN
            for first, last, asserted in ((stay.start, stay.last, True), (stay.last, stay.end, False)):
                if first < last:
                    for start, end in self._denied.left_of(object, attested_at, first, last):
                        self._pieces.append((start, number, end, asserted))
                        if end < AFTER:
                            self._over.setdefault(end, []).append(number)
        self._pieces.sort(reverse=True)
        return cut

    def run(self) -> list[Held]:
        """What holds when, in order of time."""
        starts, turns, starting, turning = self._starts, self._turns, self._starting, self._turning
        of, pieces = self._of, self._pieces
        until = AFTER
        while (now := min(until, starts[starting[-1]], turns[turning[-1]], pieces[-1][0])) < AFTER:
            begins = starts[starting[-1]] == now or pieces[-1][0] == now
            fresh = self._begin(now) if begins else _NONE
            turned = self._turn(now) if turns[turning[-1]] == now else _NONE
            top, until = self._top(now)
            if top < 0 or of[top] != self._holder:
                self._change(now, top, fresh)
                self._strike(top, now, turned)
            elif self._grow(fresh) or turned:
                self._strike(top, now, turned)
        if self._held is not None:
            self._done.append(self._held)
        for held in self._done:
            held.started_by = self._stays[held.first].record
        return self._done

    def _begin(self, now: int) -> list[int]:
        """The stays of which something begins, so that it may hold."""
        starts, starting, lives, lasts = self._starts, self._starting, self._lives, self._lasts
        fresh: list[int] = []
        while starts[starting[-1]] == now:
            fresh.append(at := starting.pop())
            if now < lasts[at]:
                heappush(self._asserted, self._bounded[at] - at)
            else:
                _add(self._persisting, now * self._count + at)
        while self._pieces[-1][0] == now:
            _, at, end, is_asserted = self._pieces.pop()
            if lives[at] == BEFORE:  # it lapsed while it was denied
                continue
            fresh.append(at)
            lives[at] = end
            if is_asserted:
                lasts[at] = end
                heappush(self._asserted, self._bounded[at] - at)
            else:
                _add(self._persisting, self._turns[at] * self._count + at)
        if self._lanes:
            for at in fresh:
                lane = self._lanes.get(self._of[at])
                if lane is not None:
                    _add(lane.latest, self._starts[at] * self._count + at)
                    heappush(lane.earliest, at)
        return fresh

    def _top(self, now: int) -> tuple[int, int]:
        """The stay of best rank, or -1; and until when it is that, unless something begins."""
        asserted, persisting, count = self._asserted, self._persisting, self._count
        while asserted:
            top = -asserted[0] % count
            if self._lasts[top] > now:
                return top, self._lasts[top]
            heappop(asserted)
        while persisting:
            top = persisting[-1] % count
            if self._lives[top] > now:
                return top, self._lives[top]
            persisting.pop()
        return -1, AFTER

    def _grow(self, fresh: Iterable[int]) -> bool:
        """Whether stays join what already holds; they may be attested earlier than all before."""
        held, of, holder = self._held, self._of, self._holder
        joined = False
        for at in fresh:
            if of[at] == holder and held is not None:
                joined = True
                if at < held.first:
                    held.first = at
        return joined

    def _turn(self, now: int) -> list[int]:
        """The stays that only persist from now on."""
        turns, turning, count = self._turns, self._turning, self._count
        turned: list[int] = []
        while turns[turning[-1]] == now:
            turned.append(at := turning.pop())
            if self._starts[at] < now and at not in self._cut:
                _add(self._persisting, now * count + at)
        return turned

    def _change(self, now: int, top: int, fresh: Sequence[int]) -> None:
        """Closes what held, and opens what holds from now on: the object of the stay `top`, or nothing."""
        before, closed = self._held, self._holder
        self._held, self._holder = None, -1
        if top >= 0:
            self._open(now, top, fresh)
        if before is None:
            return
        before.end = now
        if self._goes_on(closed, now):
            before.struck_by = self._held
        else:
            over = [at for at in self._over[now] if self._of[at] == closed and self._lives[at] == now]
            before.ended_with([self._stays[at] for at in over], self._denied)
        self._done.append(before)
        lane = self._lanes.get(closed)
        if lane is None:
            if self._turns[self._only[closed]] < now:
                heappush(self._due, self._starts[self._only[closed]] * self._objects + closed)
        elif lane.waiting:
            heappush(self._due, lane.waiting[0] // self._count * self._objects + closed)

    def _open(self, now: int, top: int, fresh: Sequence[int]) -> None:
        self._holder = of = self._of[top]
        self._held = held = Held(self._stays[top].object, now)
        lane = self._lanes.get(of)
        if lane is None:
            held.first = top
        else:
            while self._lives[lane.earliest[0]] <= now:
                heappop(lane.earliest)
            held.first = lane.earliest[0]
        if len(fresh) == 1 and fresh[0] == top and self._starts[top] == now:  # most often
            stay = self._stays[top]
            if stay.start_precision is not None:
                held.precision, held.assumed = stay.start_precision, stay.assumed
                return
        starting = [self._stays[at] for at in fresh if self._of[at] == of and self._starts[at] == now]
        if not starting or not held.begun_with(starting):
            over = self._over.get(now, ())
            held.made_room_by(self._stays[at] for at in over if self._of[at] != of)

    def _goes_on(self, of: int, now: int) -> bool:
        """Whether any stay of an object does; if it has a lane, the one of the latest start comes on top."""
        lane = self._lanes.get(of)
        if lane is None:
            return self._lives[self._only[of]] > now
        while lane.latest and self._lives[lane.latest[-1] % self._count] <= now:
            lane.latest.pop()
        return bool(lane.latest)

    def _strike(self, top: int, now: int, turned: Iterable[int]) -> None:
        """What only persists lapses for good once a rival that began no earlier has held."""
        due, lives, count, objects, holder = self._due, self._lives, self._count, self._objects, self._holder
        latest = _NOBODY if top < 0 else self._starts[top]
        if top >= 0 and holder in self._lanes and self._goes_on(holder, now):
            latest = self._lanes[holder].latest[-1] // count
        for at in turned:
            if self._starts[at] <= latest and self._of[at] != holder:
                lives[at] = BEFORE
            else:
                self._wait(at)
        while due and due[0] // objects <= latest:
            of = heappop(due) % objects
            if of == holder:  # its own are put back when it holds no more
                continue
            lane = self._lanes.get(of)
            if lane is None:
                lives[self._only[of]] = BEFORE
                continue
            while lane.waiting and lane.waiting[0] // count <= latest:
                lives[heappop(lane.waiting) % count] = BEFORE
            if lane.waiting:
                heappush(due, lane.waiting[0] // count * objects + of)

    def _wait(self, at: int) -> None:
        """A stay only persists, and has not lapsed yet."""
        start, of = self._starts[at], self._of[at]
        lane = self._lanes.get(of)
        first = True
        if lane is not None:
            heappush(lane.waiting, start * self._count + at)
            first = lane.waiting[0] % self._count == at
        if first and of != self._holder:
            heappush(self._due, start * self._objects + of)


def _add(ordered: list[int], key: int) -> None:
    """Time goes on, so that most keys come last."""
    if ordered and key < ordered[-1]:
        insort(ordered, key)
    else:
        ordered.append(key)


def _by_attestation(stays: list[Stay], content: Content) -> list[Stay]:
    """By attestation, then start, text and id of the object, end, `seen`, id of the record."""
    # Sorting twice by one integer is faster than once by six things; only what ties needs them all.
    stays.sort(key=_START)
    stays.sort(key=_ATTESTED_AT)
    if len(set(map(_ATTESTED_AND_START, stays))) == len(stays):
        return stays
    found: list[Stay] = []
    for _, tied in groupby(stays, key=_ATTESTED_AND_START):
        alike = list(tied)
        if len(alike) > 1:
            alike.sort(key=lambda each: (content(each.object), each.object, each.end, each.seen, each.record))
        found += alike
    return found


def _latest_first(times: list[int], numbers: Iterable[int]) -> list[int]:
    """The numbers by their times, latest first, behind a sentinel that comes after all."""
    ordered = sorted(numbers, key=times.__getitem__)
    times.append(AFTER)
    ordered.append(len(times) - 1)
    ordered.reverse()
    return ordered
