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


class BalanceWatch:
    """Looks every `poll_seconds`; changes between two looks are told as one."""

    def __init__(self, ledger: Ledger, poll_seconds: float) -> None:
        self._ledger = ledger
        self._poll_seconds = poll_seconds

    async def watch(
        self, tenant: TenantId, threshold: MicroCredits | None, told: Told | None
    ) -> AsyncIterator[tuple[Balance, Told]]:
        """The balance at once (without `told`), then after each change; never ends by itself.

        With a threshold a change is one that takes what is available from below it to it or above, or back.
        Raises TenantNotFound, and CursorExpired where the ledger has no entry as new as `told` says.
        """
        while True:
            entry, balance = await self._ledger.newest(tenant)
            if told is not None and told.entry > entry:
                raise CursorExpired
            if told is None or _differs(told, entry, balance.available, threshold):
                told = Told(entry, balance.available)
                yield balance, told
            await asyncio.sleep(self._poll_seconds)


def _differs(told: Told, entry: int, available: MicroCredits, threshold: MicroCredits | None) -> bool:
    if threshold is None:
        return told.entry != entry
    return (told.available < threshold) != (available < threshold)
