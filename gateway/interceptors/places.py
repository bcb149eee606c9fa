"""Places: how many calls are worked on at once, as many as the event loop keeps up with, shared by tenants.

Where the loop is late, more calls at once only make each of them slower, until all miss their deadlines.
So the number of places falls while it is late and rises while it is not and places are wanted (additive
increase, multiplicative decrease). Calls that wait elsewhere cost the loop nothing: they get many places.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

from gateway.errors import Overloaded

LEAST = 4
"""Places that there always are, and with which a loop that is busy is never idle."""
FIRST = 16
TICK_SECONDS = 0.05
LATE_SECONDS = 0.03
"""How late the loop may be. What one call does at once is a few milliseconds."""
HELD_SECONDS = 2.0
"""Longer than any call works that is not waiting; so few that wait can't keep all others out."""
_SMOOTHING = 0.3
_FALL, _RISE = 0.9, 10

_leave: ContextVar[Callable[[], None] | None] = ContextVar("palimpsest_leave", default=None)


def leave_place() -> None:
    """Gives back the place of the call that is being handled: from here on it only waits. Idempotent."""
    leave = _leave.get()
    if leave is not None:
        leave()


class Places:
    """At most `most` places; at most `most_waiting` calls wait for one, each at most `wait_seconds`.

    A free place goes to the tenant that has fewest. One place is never of the tenant that has all others, so
    that who comes seldom is served at once. Where too many wait, the tenant with most of them loses one.
    """

    def __init__(
        self, most: int, most_waiting: int, wait_seconds: float, held_seconds: float = HELD_SECONDS
    ) -> None:
        """A place that is held for `held_seconds` while the loop is on time is handed on: who has it waits,
        for a revision perhaps.
        """
        self._most = most
        self._most_waiting = most_waiting
        self._wait_seconds = wait_seconds
        self._held_seconds = held_seconds
        self._least = min(LEAST, most)
        self._limit = float(min(FIRST, most))
        self._busy: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._late = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """Places now."""
        return int(self._limit)

    @property
    def late(self) -> bool:
        """Whether the loop is late; not known, so no, while nobody works."""
        return self._timer is not None and self._late > LATE_SECONDS

    @asynccontextmanager
    async def taken(self, owner: str, seconds: float = float("inf")) -> AsyncIterator[None]:
        """Around the work of a call of a tenant that has `seconds` left. Raises Overloaded.

        It waits half of them at most: what is let in with less has seldom time to end.
        """
        await self._enter(owner, min(self._wait_seconds, seconds / 2))
        gone = False

        def leave() -> None:
            nonlocal gone
            if not gone:
                gone = True
                self._release(owner)

        token = _leave.set(leave)
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal timer
            if self._late <= LATE_SECONDS:
                leave()
            else:  # it may be slow for the others' sake: one more beside it would help nobody
                timer = loop.call_later(self._held_seconds, look)

        timer = loop.call_later(self._held_seconds, look)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            _leave.reset(token)
            leave()

    async def _enter(self, owner: str, wait_seconds: float) -> None:
        self._watch()
        if not self._waiting and self._fits(owner):
            self._busy[owner] += 1
            return
        self._make_room(owner)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(place)
        # A tenant may be held back while there is a place for another.
        self._hand_out()
        try:
            async with asyncio.timeout(wait_seconds):
                await place
        except BaseException as error:
            self._give_up(owner, place)
            if isinstance(error, TimeoutError):
                raise Overloaded("the gateway") from error
            raise

    def _make_room(self, owner: str) -> None:
        """For one more to wait. Raises Overloaded when that would be taken from a tenant with no more."""
        if sum(map(len, self._waiting.values())) < self._most_waiting:
            return
        longest = max(self._waiting, key=lambda one: len(self._waiting[one]), default=owner)
        if len(self._waiting.get(longest, ())) <= len(self._waiting.get(owner, ())) + 1:
            raise Overloaded("the gateway")
        newest = self._waiting[longest].pop()
        newest.set_exception(Overloaded("the gateway"))

    def _give_up(self, owner: str, place: "asyncio.Future[None]") -> None:
        if place.done() and not place.cancelled() and place.exception() is None:
            self._release(owner)  # it came too late
            return
        queue = self._waiting.get(owner)
        if queue is not None and place in queue:
            queue.remove(place)
        if queue is not None and not queue:
            del self._waiting[owner]

    def _fits(self, owner: str) -> bool:
        limit = self.limit
        return self._busy.total() < limit and (limit == 1 or self._busy[owner] < limit - 1)

    def _hand_out(self) -> None:
        while True:
            able = [owner for owner in self._waiting if self._fits(owner)]
            if not able:
                return
            owner = min(able, key=lambda one: self._busy[one])  # of equals, who has waited longest
            queue = self._waiting[owner]
            place = queue.popleft()
            if queue:
                self._waiting.move_to_end(owner)
            else:
                del self._waiting[owner]
            if not place.done():
                self._busy[owner] += 1
                place.set_result(None)

    def _release(self, owner: str) -> None:
        self._busy[owner] -= 1
        if not self._busy[owner]:
            del self._busy[owner]
        self._hand_out()

    def _watch(self) -> None:
        """Looks after the loop while there is work."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(TICK_SECONDS, self._tick, loop.time() + TICK_SECONDS)

    def _tick(self, due: float) -> None:
        late = max(0.0, asyncio.get_running_loop().time() - due)
        self._timer = None
        self.learn(late)
        if self._busy or self._waiting:
            self._watch()

    def learn(self, late_seconds: float) -> None:
        """Adjusts the places to how late the loop was."""
        self._late += _SMOOTHING * (late_seconds - self._late)
        busy = self._busy.total()
        if self._late > LATE_SECONDS:
            self._limit = max(float(self._least), min(self._limit, float(busy)) * _FALL)
        elif busy >= self.limit - 1 or self._waiting:
            self._limit = min(float(self._most), self._limit + max(1.0, self._limit / _RISE))
        self._hand_out()
