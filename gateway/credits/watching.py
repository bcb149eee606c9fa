"""Watching a balance: told at once, then when it changes, or only when it crosses a threshold."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.values import Balance
from gateway.errors import CursorExpired
from services.domain.scope import TenantId


@dataclass(frozen=True, slots=True)
class Told:
    """What a watcher has been told: the tenant's newest entry then, and what was available."""

    entry: int
    available: MicroCredits


Found = tuple[int, Balance]
"""A tenant's newest entry, and its balance."""


@dataclass(slots=True)
class _Look:
    """The next look at a tenant's balance, and how many wait for it."""

    task: "asyncio.Task[Found]"
    waiting: int = 0


class BalanceWatch:
    """Looks every `poll_seconds`, once for all who watch a tenant; what changed meanwhile is told as one."""

    def __init__(self, ledger: Ledger, poll_seconds: float) -> None:
        self._ledger = ledger
        self._poll_seconds = poll_seconds
        self._looks: dict[TenantId, _Look] = {}

    async def watch(
        self, tenant: TenantId, threshold: MicroCredits | None, told: Told | None
    ) -> AsyncIterator[tuple[Balance, Told]]:
        """The balance at once (without `told`), then after each change; never ends by itself.

        With a threshold a change is one that takes what is available from below it to it or above, or back.
        Raises TenantNotFound, and CursorExpired where the ledger has no entry as new as `told` says.
        """
        entry, balance = await self._ledger.newest(tenant)
        if told is not None and told.entry > entry:
            raise CursorExpired
        while True:
            if told is None or _differs(told, entry, balance.available, threshold):
                told = Told(entry, balance.available)
                yield balance, told
            found = await self._next(tenant)
            # A look that others had begun may be older than what this watcher knows.
            if found[0] >= entry:
                entry, balance = found

    async def _next(self, tenant: TenantId) -> Found:
        look = self._looks.get(tenant)
        if look is None:
            look = _Look(asyncio.get_running_loop().create_task(self._later(tenant)))
            self._looks[tenant] = look
        look.waiting += 1
        try:
            return await asyncio.shield(look.task)
        finally:
            look.waiting -= 1
            if not look.waiting:
                look.task.cancel()
                if self._looks.get(tenant) is look:
                    del self._looks[tenant]

    async def _later(self, tenant: TenantId) -> Found:
        await asyncio.sleep(self._poll_seconds)
        try:
            return await self._ledger.newest(tenant)
        finally:
            self._looks.pop(tenant, None)


def _differs(told: Told, entry: int, available: MicroCredits, threshold: MicroCredits | None) -> bool:
    if threshold is None:
        return told.entry != entry
    return (told.available < threshold) != (available < threshold)
