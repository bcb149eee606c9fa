"""Limits on calls: how many at once, of all tenants and of each, and not before the endpoint allows."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from services.domain.scope import TenantId


@dataclass(slots=True)
class _Lane:
    gate: asyncio.Semaphore
    users: int = field(default=0)


class Slots:
    """Calls in flight. A tenant waits in its own lane first, so that one can't fill the common queue."""

    def __init__(self, total: int, per_tenant: int) -> None:
        self._all = asyncio.Semaphore(total)
        self._per_tenant = per_tenant
        self._lanes: dict[TenantId, _Lane] = {}

    @asynccontextmanager
    async def held(self, tenant: TenantId | None) -> AsyncIterator[None]:
        """Waits for a slot and holds it. None is our own work, bounded by the common limit alone."""
        if tenant is None:
            async with self._all:
                yield
            return
        lane = self._lanes.setdefault(tenant, _Lane(asyncio.Semaphore(self._per_tenant)))
        lane.users += 1
        try:
            async with lane.gate, self._all:
                yield
        finally:
            lane.users -= 1
            if lane.users == 0:
                del self._lanes[tenant]

    @property
    def tenants(self) -> int:
        """How many tenants hold or await a slot."""
        return len(self._lanes)


class Pace:
    """When the endpoint may be called again. One refusal with Retry-After holds back every call."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._not_before = 0.0

    def hold(self, seconds: float) -> None:
        self._not_before = max(self._not_before, self._clock() + seconds)

    @property
    def wait_seconds(self) -> float:
        return max(0.0, self._not_before - self._clock())

    async def wait(self) -> None:
        while (seconds := self.wait_seconds) > 0:  # noqa: ASYNC110 - the moment may move while we sleep
            await asyncio.sleep(seconds)
