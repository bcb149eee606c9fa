"""Limits on calls: how many at once, in all and of each tenant; tokens a minute; the endpoint's own pace."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from services.domain.scope import TenantId
from services.llm.port import ModelRateLimited


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


@dataclass(frozen=True, slots=True)
class _Level:
    tokens: float
    at: float


class TokenBudgets:
    """Tokens that each tenant may still spend: a minute's worth at most, refilled evenly; debts delay calls.

    What a call costs is known after it, so a tenant may overdraw by what it has in flight. `clock` counts
    seconds and never goes back.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        """`per_minute` 0: no limit."""
        self._most = per_minute
        self._per_second = per_minute / 60
        self._clock = clock
        self._levels: dict[TenantId, _Level] = {}

    def spend(self, tenant: TenantId | None, tokens: int) -> None:
        """Counts a call that was answered. None is our own work, which is not counted."""
        if tenant is None or not self._most:
            return
        now = self._clock()
        self._levels[tenant] = _Level(self._level(tenant, now) - tokens, now)
        # Whoever has a full minute again is like a tenant that never called.
        full = [one for one in self._levels if self._level(one, now) >= self._most]
        for one in full:
            del self._levels[one]

    def wait_seconds(self, tenant: TenantId | None) -> float:
        """Until the tenant's debt is paid off; 0 when it may call."""
        if tenant is None or tenant not in self._levels:
            return 0.0
        return max(0.0, -self._level(tenant, self._clock()) / self._per_second)

    async def wait(self, tenant: TenantId | None, most_seconds: float) -> None:
        """Waits until the tenant may call. Raises ModelRateLimited at once for more than `most_seconds`."""
        while (seconds := self.wait_seconds(tenant)) > 0:  # others of the tenant may spend while we sleep
            if seconds > most_seconds:
                raise ModelRateLimited("the tenant has used its tokens of this minute", seconds)
            await asyncio.sleep(seconds)

    @property
    def tenants(self) -> int:
        """How many tenants have less than a full minute's tokens."""
        return len(self._levels)

    def _level(self, tenant: TenantId, now: float) -> float:
        known = self._levels.get(tenant)
        if known is None:
            return float(self._most)
        return min(self._most, known.tokens + (now - known.at) * self._per_second)


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
