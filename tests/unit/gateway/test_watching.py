"""Who watches one balance shares its looks."""

import asyncio
from typing import cast

from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.values import Balance
from gateway.credits.watching import BalanceWatch, Told
from services.domain.instants import Instant
from services.domain.scope import TenantId

ACME, GLOBEX = TenantId("acme"), TenantId("globex")


class Balances:
    """Answers at once until everybody has looked once; then when it is let. `waiting`: so many looks wait."""

    def __init__(self, watchers: int, waiting: int = 1) -> None:
        self._watchers = watchers
        self._looks = watchers + waiting
        self.waiting = asyncio.Event()
        self.asked: list[TenantId] = []
        self.go_on = asyncio.Event()
        self.entry = 1

    async def newest(self, tenant: TenantId) -> tuple[int, Balance]:
        self.asked.append(tenant)
        if len(self.asked) == self._looks:
            self.waiting.set()
        if len(self.asked) > self._watchers:
            await self.go_on.wait()
        return self.entry, Balance(MicroCredits(self.entry), MicroCredits(0), Instant(0))


async def test_many_watchers_of_a_tenant_cost_one_look() -> None:
    ledger = Balances(watchers=21, waiting=2)
    watch = BalanceWatch(cast("Ledger", ledger), poll_seconds=0)
    streams = [watch.watch(ACME, None, None) for _ in range(20)] + [watch.watch(GLOBEX, None, None)]
    firsts = [await anext(stream) for stream in streams]
    assert [told.entry for _, told in firsts] == [1] * 21
    seconds = [asyncio.ensure_future(anext(stream)) for stream in streams]
    await ledger.waiting.wait()
    ledger.entry = 2
    ledger.go_on.set()
    told = await asyncio.gather(*seconds)
    assert [one.entry for _, one in told] == [2] * 21
    assert (ledger.asked.count(ACME), ledger.asked.count(GLOBEX)) == (21, 2)


async def test_who_leaves_takes_no_look_from_the_others() -> None:
    ledger = Balances(watchers=2)
    watch = BalanceWatch(cast("Ledger", ledger), poll_seconds=0)
    leaver, stayer = watch.watch(ACME, None, None), watch.watch(ACME, None, Told(1, MicroCredits(1)))
    await anext(leaver)
    leaving, staying = asyncio.ensure_future(anext(leaver)), asyncio.ensure_future(anext(stayer))
    await ledger.waiting.wait()
    leaving.cancel()
    await asyncio.wait({leaving})
    ledger.entry = 2
    ledger.go_on.set()
    _, told = await staying
    assert told.entry == 2
