"""Fairness between tenants: in what order jobs begin, and whose chunk is understood next."""

import asyncio
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from services.domain.scope import TenantId

TRACKED_TENANTS = 10_000
_BEGINNING = 1_767_225_600
"""2026-01-01: priorities are small numbers, and stay so for sixty years."""


def seconds_since_2026() -> int:
    return max(0, int(time.time()) - _BEGINNING)


class Turns:
    """The turn of a tenant's next job: now, or a second after that of its job before, whichever is later.

    So a tenant that hands in a thousand jobs at once has spread them over a thousand seconds to come; whoever
    comes meanwhile goes before most of them, and none of them waits behind those who come after its turn.
    Only the order of what waits follows from it: an idle worker takes whatever there is.
    """

    def __init__(self, now: Callable[[], int] = seconds_since_2026) -> None:
        self._now = now
        self._last: OrderedDict[TenantId, int] = OrderedDict()

    def next(self, tenant: TenantId) -> int:
        """A number: the lowest is first. From 1."""
        turn = max(self._now(), self._last.get(tenant, 0)) + 1
        self._last[tenant] = turn
        self._last.move_to_end(tenant)
        while len(self._last) > TRACKED_TENANTS:
            self._last.popitem(last=False)
        return turn


class FairGate:
    """Lets so many in at once; of those who wait, tenants take turns, and a tenant's own in their order.

    Who waits is bounded by the chunks of jobs that are at work: a job has at most one a 750 tokens of its two
    megabytes, and a process `workflow_concurrency` jobs.
    """

    def __init__(self, places: int) -> None:
        assert places > 0
        self._free = places
        self._inside: defaultdict[TenantId, int] = defaultdict(int)
        self._waiting: OrderedDict[TenantId, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, tenant: TenantId) -> AsyncIterator[None]:
        await self._enter(tenant)
        try:
            yield
        finally:
            self._leave(tenant)

    async def _enter(self, tenant: TenantId) -> None:
        if self._free:
            self._free -= 1
            self._inside[tenant] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(tenant, deque())
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(tenant)  # it was let in just then
            elif turn in queue:
                queue.remove(turn)
                if not queue:
                    self._waiting.pop(tenant, None)
            raise

    def _leave(self, tenant: TenantId) -> None:
        self._inside[tenant] -= 1
        if not self._inside[tenant]:
            del self._inside[tenant]
        self._free += 1
        while self._free and self._waiting:
            # Whoever has fewest inside; among equals the one that waits longest for its turn.
            following = min(self._waiting, key=lambda one: self._inside.get(one, 0))
            queue = self._waiting[following]
            turn = queue.popleft()
            self._waiting.move_to_end(following)
            if not queue:
                del self._waiting[following]
            if not turn.done():
                self._free -= 1
                self._inside[following] += 1
                turn.set_result(None)
