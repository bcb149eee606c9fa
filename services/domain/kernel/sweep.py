"""The sweep: which objects hold at each instant, borders in order of time (rules 2 to 4)."""

from collections.abc import Hashable, Iterable, Sequence
from heapq import heapify, heappop, heappush

from services.domain.ids import StatementId
from services.domain.kernel.held import Held, attestation
from services.domain.kernel.rivals import Rivals
from services.domain.kernel.stays import AFTER, BEFORE, Content, Denied, Stay


class _Lane:
    """What the sweep keeps of one object. Heaps hold what may have lapsed; it is dropped when met on top."""

    __slots__ = ("attested", "best", "held", "object", "slot", "starts", "waiting")

    def __init__(self, object: StatementId, slot: Hashable) -> None:
        self.object = object
        self.slot = slot
        self.held: Held | None = None
        self.best: list[int] = []
        """Pieces, best rank first."""
        self.starts: list[tuple[int, int]] = []
        """(-start, piece), latest start first."""
        self.attested: list[tuple[int, int]] = []
        """(order of attestation, piece)."""
        self.waiting: list[tuple[int, int]] = []
        """(start, stay) of stays that only persist and aren't cut, earliest start first."""


class Sweep:
    """Over stays whose objects may contradict each other. One use: `run`.

    A stay is cut at `last` and by denials into pieces, whose index is their rank: 0 holds before all others.
    """

    def __init__(self, stays: Sequence[Stay], denied: Denied, rivals: Rivals, content: Content) -> None:
        self._stays = stays
        self._denied = denied
        self._rivals = rivals
        self._lanes = {stay.object: _Lane(stay.object, rivals.slot(stay.object)) for stay in stays}
        self._tops: dict[Hashable, list[int]] = {lane.slot: [] for lane in self._lanes.values()}
        self._waiting: dict[Hashable, list[tuple[int, StatementId]]] = {slot: [] for slot in self._tops}
        self._plain = len(self._tops) == 1 and not any(object in rivals.exempt for object in self._lanes)
        texts = {object: (content(object), object) for object in self._lanes}
        ranked = _ranked(stays, denied, texts)
        self._stay_of = [piece[-3] for piece in ranked]
        self._lane_of = [self._lanes[stays[at].object] for at in self._stay_of]
        self._starts = [piece[-2] for piece in ranked]
        self._ends = [piece[-1] for piece in ranked]
        """When each piece ends; BEFORE once it has lapsed."""
        self._persisting: dict[int, list[int]] = {}
        for at, piece in enumerate(ranked):
            if not piece[0]:
                self._persisting.setdefault(piece[-3], []).append(at)
        self._order = [0] * len(stays)
        attestations = [attestation(stay) for stay in stays]
        for order, at in enumerate(sorted(range(len(stays)), key=attestations.__getitem__)):
            self._order[at] = order
        self._holding: list[StatementId] = []
        self._done: list[Held] = []

    def run(self) -> list[Held]:
        """What holds when, unordered."""
        starts, ends, lasts = self._starts, list(self._ends), [stay.last for stay in self._stays]
        starting = sorted(range(len(starts)), key=starts.__getitem__, reverse=True)
        ending = sorted(range(len(ends)), key=ends.__getitem__, reverse=True)
        turning = sorted(range(len(lasts)), key=lasts.__getitem__, reverse=True)
        for now in sorted({*starts, *ends, *lasts}):
            fresh: list[int] = []
            while starting and starts[starting[-1]] == now:
                at = starting.pop()
                if self._ends[at] > now:  # it may have lapsed while it was denied
                    fresh.append(at)
            over: list[int] = []
            while ending and ends[ending[-1]] == now:
                over.append(ending.pop())
            self._add(fresh)
            while turning and lasts[turning[-1]] == now:
                self._wait(turning.pop())
            holding = self._holders(now)
            if holding != self._holding:
                self._close(now, holding, over)
                self._open(now, holding, fresh, over)
                self._holding = holding
            self._grow(fresh)
            for object in holding:
                self._strike(now, self._lanes[object])
        return self._done

    def _add(self, fresh: Iterable[int]) -> None:
        for at in fresh:
            stay, lane = self._stay_of[at], self._lane_of[at]
            heappush(self._tops[lane.slot], at)
            heappush(lane.starts, (-self._stays[stay].start, at))
            heappush(lane.attested, (self._order[stay], at))
            if not self._plain:
                heappush(lane.best, at)

    def _wait(self, at: int) -> None:
        stay = self._stays[at]
        if stay.last < stay.end:
            lane = self._lanes[stay.object]
            heappush(lane.waiting, (stay.start, at))
            if lane.waiting[0][1] == at:
                heappush(self._waiting[lane.slot], (stay.start, stay.object))

    def _top(self, heap: list[int], now: int) -> int | None:
        while heap and self._ends[heap[0]] <= now:
            heappop(heap)
        return heap[0] if heap else None

    def _top_pair(self, heap: list[tuple[int, int]], now: int) -> tuple[int, int] | None:
        while heap and self._ends[heap[0][1]] <= now:
            heappop(heap)
        return heap[0] if heap else None

    def _object(self, piece: int) -> StatementId:
        return self._lane_of[piece].object

    def _holders(self, now: int) -> list[StatementId]:
        """The objects that hold, best rank first: down the rank, unless a holding one contradicts."""
        if self._plain:
            (heap,) = self._tops.values()
            top = self._top(heap, now)
            return [] if top is None else [self._object(top)]
        tops = [top for heap in self._tops.values() if (top := self._top(heap, now)) is not None]
        heapify(tops)
        holding: list[StatementId] = []
        decided: set[StatementId] = set()
        aside: list[tuple[Hashable, int]] = []
        while tops:
            object = self._object(heappop(tops))
            if object in decided:
                continue
            decided.add(object)
            slot = self._lanes[object].slot
            if not any(self._rivals(object, other) for other in holding):
                holding.append(object)
                # Whoever is exempt from this one may hold too; all others of the slot can't.
                candidates = [
                    self._top(self._lanes[other].best, now)
                    for other in self._rivals.exempt.get(object, ())
                    if other in self._lanes and other not in decided
                ]
            elif any(self._lanes[other].slot == slot for other in holding):
                continue
            else:
                candidates = [self._next(slot, decided, aside, now)]
            for candidate in candidates:
                if candidate is not None:
                    heappush(tops, candidate)
        for slot, piece in aside:
            heappush(self._tops[slot], piece)
        return holding

    def _next(
        self, slot: Hashable, decided: set[StatementId], aside: list[tuple[Hashable, int]], now: int
    ) -> int | None:
        """The best piece of a slot whose object isn't decided yet; those passed over are put aside."""
        heap = self._tops[slot]
        while (top := self._top(heap, now)) is not None:
            if self._object(top) not in decided:
                return top
            aside.append((slot, heappop(heap)))
        return None

    def _close(self, now: int, holding: list[StatementId], over: Iterable[int]) -> None:
        kept = set(holding)
        for object in self._holding:
            if object in kept:
                continue
            lane = self._lanes[object]
            held = lane.held
            assert held is not None, "what holds was opened"
            held.end, lane.held = now, None
            held.started_by = self._stays[held.first].record
            self._done.append(held)
            if self._top_pair(lane.starts, now) is not None:
                striker = next(other for other in holding if self._rivals(object, other))
                held.struck_by = self._lanes[striker].held or _opening(self._lanes[striker], now)
            elif now != AFTER:
                gone = [at for at in over if self._object(at) == object and self._ends[at] == now]
                held.ended_with((self._stays[self._stay_of[at]] for at in gone), self._denied)

    def _open(self, now: int, holding: list[StatementId], fresh: Sequence[int], over: Sequence[int]) -> None:
        for object in holding:
            lane = self._lanes[object]
            if lane.held is None or lane.held.first < 0:
                held = lane.held or _opening(lane, now)
                first = self._top_pair(lane.attested, now)
                assert first is not None, "what holds has a piece"
                held.first = self._stay_of[first[1]]
                self._describe(held, fresh, over)

    def _grow(self, fresh: Iterable[int]) -> None:
        """A stay that joins what already holds may be attested earlier than all before."""
        for at in fresh:
            stay, growing = self._stay_of[at], self._lane_of[at].held
            if growing is not None and self._order[stay] < self._order[growing.first]:
                growing.first = stay

    def _describe(self, held: Held, fresh: Iterable[int], over: Iterable[int]) -> None:
        began = (self._stays[self._stay_of[at]] for at in fresh)
        if not held.begun_with(
            stay for stay in began if stay.object == held.object and stay.start == held.start
        ):
            ended = (self._stays[self._stay_of[at]] for at in over)
            held.made_room_by(stay for stay in ended if self._rivals(held.object, stay.object))

    def _strike(self, now: int, lane: _Lane) -> None:
        """What only persists lapses for good once a rival that began no earlier has held."""
        top = self._top_pair(lane.starts, now)
        assert top is not None, "what holds has a piece"
        latest = -top[0]
        heap = self._waiting[lane.slot]
        spared: set[StatementId] = set()
        while heap and heap[0][0] <= latest:
            start, object = heappop(heap)
            other = self._lanes[object]
            if object in spared or not other.waiting or other.waiting[0][0] != start:
                continue
            if object != lane.object and (self._plain or self._rivals(lane.object, object)):
                self._lapse(other, latest)
            else:
                spared.add(object)
        for object in spared:
            heappush(heap, (self._lanes[object].waiting[0][0], object))
        for object in self._rivals.judged.get(lane.object, ()):
            if object in self._lanes:
                self._lapse(self._lanes[object], latest)

    def _lapse(self, lane: _Lane, latest: int) -> None:
        before = len(lane.waiting)
        while lane.waiting and lane.waiting[0][0] <= latest:
            for piece in self._persisting.get(heappop(lane.waiting)[1], ()):
                self._ends[piece] = BEFORE
        if lane.waiting and len(lane.waiting) < before:
            heappush(self._waiting[lane.slot], (lane.waiting[0][0], lane.object))


def _opening(lane: _Lane, now: int) -> Held:
    lane.held = Held(lane.object, now)
    return lane.held


_Ranked = tuple[bool, int, int, int, tuple[str, StatementId], int, int, int, int, int]
"""Asserted; end of the asserted part, or whether an end was stated; attested; start; object; end; seen; then
the index of the stay, and start and end of the piece."""


def _ranked(
    stays: Sequence[Stay], denied: Denied, texts: dict[StatementId, tuple[str, StatementId]]
) -> list[_Ranked]:
    """The pieces of all stays, best rank first."""
    ranked: list[_Ranked] = []
    for at, (_, object, start, last, end, attested, seen, bounded, *_) in enumerate(stays):
        text = texts[object]
        if start < last:
            for part in denied.left_of(object, attested, start, last):
                ranked.append((True, bounded, attested, start, text, end, seen, at, *part))
        if last < end:
            for part in denied.left_of(object, attested, last, end):
                ranked.append((False, last, attested, start, text, end, seen, at, *part))
    ranked.sort(reverse=True)
    return ranked
