"""What the ledger must do on every database. Subclasses give `database`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from sqlalchemy import delete, exc, update

from gateway.credits.audit import audit
from gateway.credits.books import Books
from gateway.credits.journal import open_accounts
from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.values import Account, Courtesy, Entry, EntryFilter, EntryKind, HoldId, HoldState
from gateway.errors import (
    ChargeNotFound,
    HoldExpired,
    InsufficientCredits,
    RequestIdReused,
    TenantNotFound,
    ValidationFailed,
)
from gateway.store.clock import SkewedClock
from gateway.store.tables import accounts, journal_entries, spends
from services.domain.scope import TenantId
from services.stores.paging import Page
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across

ACME = TenantId("acme")
GLOBEX = TenantId("globex")
TTL = 60.0


def micros(amount: int) -> MicroCredits:
    return MicroCredits(amount)


class LedgerContract:
    """Subclasses have the fixture `database`: an empty one with the ledger's tables."""

    @pytest.fixture
    def clock(self) -> SkewedClock:
        return SkewedClock()

    @pytest.fixture
    async def ledger(self, database: Database, clock: SkewedClock) -> Ledger:
        ledger = Ledger(database, clock)
        async with database.write(Across("test")) as connection:
            await open_accounts(connection, ACME)
            await open_accounts(connection, GLOBEX)
        await grant(ledger, ACME, 1000)
        return ledger

    async def assert_clean(self, database: Database) -> None:
        assert await audit(database, SkewedClock()) == []

    async def test_a_grant_is_available_once(self, ledger: Ledger, database: Database) -> None:
        first, fresh = await grant(ledger, ACME, 1000)
        assert not fresh
        async with ledger.books(ACME) as books:
            assert (await books.grant(ACME, "second", micros(5), "more"))[0] > first
        assert await amounts(ledger, ACME) == (1005, 0)
        await self.assert_clean(database)

    async def test_a_request_key_names_one_grant(self, ledger: Ledger) -> None:
        with pytest.raises(RequestIdReused):
            await grant(ledger, ACME, 999)

    async def test_an_unknown_tenant_has_no_account(self, ledger: Ledger) -> None:
        with pytest.raises(TenantNotFound):
            await grant(ledger, TenantId("nobody"), 5)
        with pytest.raises(TenantNotFound):
            await ledger.balance(TenantId("nobody"))

    async def test_hold_spend_settle_moves_what_was_used(self, ledger: Ledger, database: Database) -> None:
        await hold(ledger, "h", 400)
        assert await amounts(ledger, ACME) == (600, 400)
        await spend(ledger, "h", "understand/0", 120)
        await spend(ledger, "h", "understand/1", 30)
        async with ledger.books(ACME) as books:
            ended = await books.settle(ACME, HoldId("h"), micros(150))
        assert (ended.state, ended.settled, ended.goodwill) == (HoldState.SETTLED, 150, 0)
        assert (ended.held, ended.returned) == (0, 250)
        assert await amounts(ledger, ACME) == (850, 0)
        await self.assert_clean(database)

    async def test_a_hold_needs_the_credits(self, ledger: Ledger, database: Database) -> None:
        with pytest.raises(InsufficientCredits) as refusal:
            await hold(ledger, "h", 1001)
        assert refusal.value.metadata == {"required": "1001", "available": "1000"}
        assert await ledger.hold(ACME, HoldId("h")) is None
        await hold(ledger, "h", 1000)
        await self.assert_clean(database)

    async def test_a_hold_is_made_once(self, ledger: Ledger) -> None:
        await hold(ledger, "h", 400)
        await hold(ledger, "h", 400)
        assert await amounts(ledger, ACME) == (600, 400)

    async def test_a_step_is_spent_once(self, ledger: Ledger, database: Database) -> None:
        await hold(ledger, "h", 400)
        assert await spend(ledger, "h", "s", 100) == 100
        assert await spend(ledger, "h", "s", 70) == 100
        found = await ledger.hold(ACME, HoldId("h"))
        assert found is not None
        assert found.spent == 100
        await self.assert_clean(database)

    async def test_what_is_settled_never_passes_the_hold(self, ledger: Ledger, database: Database) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 130)
        async with ledger.books(ACME) as books:
            ended = await books.settle(ACME, HoldId("h"), micros(130))
        assert (ended.settled, ended.goodwill) == (100, 30)
        assert await amounts(ledger, ACME) == (900, 0)
        await self.assert_clean(database)

    async def test_nothing_is_charged_that_was_not_spent(self, ledger: Ledger) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 10)
        async with ledger.books(ACME) as books:
            assert (await books.settle(ACME, HoldId("h"), micros(100))).settled == 10

    async def test_settling_twice_charges_once(self, ledger: Ledger, database: Database) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 40)
        async with ledger.books(ACME) as books:
            first = await books.settle(ACME, HoldId("h"), micros(40))
        async with ledger.books(ACME) as books:
            assert await books.settle(ACME, HoldId("h"), micros(3)) == first
        assert await amounts(ledger, ACME) == (960, 0)
        await self.assert_clean(database)

    async def test_void_gives_all_back_and_counts_the_work_as_goodwill(
        self, ledger: Ledger, database: Database
    ) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 40)
        async with ledger.books(ACME) as books:
            ended = await books.void(ACME, HoldId("h"), "FAILED")
            assert await books.void(ACME, HoldId("h"), "FAILED") == ended
        assert (ended.state, ended.goodwill, ended.returned) == (HoldState.VOIDED, 40, 100)
        assert await amounts(ledger, ACME) == (1000, 0)
        await self.assert_clean(database)

    async def test_an_ended_hold_takes_nothing_more(self, ledger: Ledger, database: Database) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 40)
        async with ledger.books(ACME) as books:
            await books.void(ACME, HoldId("h"), "FAILED")
        assert await spend(ledger, "h", "s", 40) == 40
        with pytest.raises(HoldExpired):
            await spend(ledger, "h", "late", 1)
        for deed in (settle_it, renew_it):
            with pytest.raises(HoldExpired):
                await done(ledger, deed, ACME)
        await self.assert_clean(database)

    async def test_a_hold_is_its_tenants_alone(self, ledger: Ledger) -> None:
        await hold(ledger, "h", 100)
        assert await ledger.hold(GLOBEX, HoldId("h")) is None
        for deed in (spend_it, settle_it, void_it, renew_it):
            with pytest.raises(HoldExpired):
                await done(ledger, deed, GLOBEX)
        assert await amounts(ledger, ACME) == (900, 100)

    async def test_expiry_follows_the_databases_clock(
        self, ledger: Ledger, database: Database, clock: SkewedClock
    ) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 40)
        clock.skew_seconds = TTL - 10
        assert await ledger.sweep() == 0
        async with ledger.books(ACME) as books:
            await books.renew(ACME, HoldId("h"), TTL)
        clock.skew_seconds = TTL + 1
        assert await ledger.sweep() == 0, "renewed"
        clock.skew_seconds = 2 * TTL
        assert await ledger.sweep() == 1
        assert await ledger.sweep() == 0
        found = await ledger.hold(ACME, HoldId("h"))
        assert found is not None
        assert (found.state, found.goodwill) == (HoldState.EXPIRED, 40)
        assert await amounts(ledger, ACME) == (1000, 0)
        await self.assert_clean(database)

    async def test_a_clock_that_goes_back_expires_nothing_early(
        self, ledger: Ledger, clock: SkewedClock
    ) -> None:
        await hold(ledger, "h", 100)
        clock.skew_seconds = -3600
        assert await ledger.sweep() == 0

    async def test_refunds_stay_within_the_charge(self, ledger: Ledger, database: Database) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 80)
        with pytest.raises(ChargeNotFound):
            await refund(ledger, "r0", 1)
        async with ledger.books(ACME) as books:
            await books.settle(ACME, HoldId("h"), micros(80))
        await refund(ledger, "r1", 50)
        await refund(ledger, "r1", 50)
        with pytest.raises(RequestIdReused):
            await refund(ledger, "r1", 20)
        with pytest.raises(ValidationFailed):
            await refund(ledger, "r2", 31)
        await refund(ledger, "r2", 30)
        found = await ledger.hold(ACME, HoldId("h"))
        assert found is not None
        assert (found.refunded, found.returned) == (80, 100)
        assert await amounts(ledger, ACME) == (1000, 0)
        await self.assert_clean(database)

    async def test_a_charge_without_hold_is_made_once(self, ledger: Ledger, database: Database) -> None:
        for _ in range(2):
            async with ledger.books(ACME) as books:
                await books.charge(ACME, "recall-1", micros(7), "RECALL", "v1")
        assert await amounts(ledger, ACME) == (993, 0)
        await self.assert_clean(database)

    async def test_goodwill_is_capped_by_day(self, ledger: Ledger, database: Database) -> None:
        courtesy = Courtesy(amount=micros(50), cap_per_day=micros(100), minimum=micros(10))
        settled = []
        for name in ("a", "b", "c"):
            await hold(ledger, name, 60)
            await spend(ledger, name, "s", 50)
            async with ledger.books(ACME) as books:
                ended = await books.settle(ACME, HoldId(name), micros(0), courtesy=courtesy)
            settled.append(ended.settled)
        assert settled == [0, 0, 10]
        assert await amounts(ledger, ACME) == (990, 0)
        await self.assert_clean(database)

    async def test_the_journal_reads_newest_first_and_pages(self, ledger: Ledger) -> None:
        await hold(ledger, "h", 400)
        await spend(ledger, "h", "s", 150)
        async with ledger.books(ACME) as books:
            await books.settle(ACME, HoldId("h"), micros(150))
        whole = await ledger.entries(ACME, EntryFilter(), Page(100))
        told = [(entry.kind, entry.account, entry.amount, entry.balance_after) for entry in whole.items]
        assert told == [
            (EntryKind.RELEASE, Account.HELD, -250, 0),
            (EntryKind.SETTLE, Account.HELD, -150, 250),
            (EntryKind.RELEASE, Account.AVAILABLE, 250, 850),
            (EntryKind.HOLD, Account.HELD, 400, 400),
            (EntryKind.HOLD, Account.AVAILABLE, -400, 600),
            (EntryKind.GRANT, Account.AVAILABLE, 1000, 1000),
        ]
        paged: list[Entry] = []
        after = ""
        while True:
            page = await ledger.entries(ACME, EntryFilter(), Page(2, after))
            paged += page.items
            if not (after := page.after):
                break
        assert paged == list(whole.items)
        only = await ledger.entries(ACME, EntryFilter(job="h", kinds=(EntryKind.SETTLE,)), Page(10))
        assert [entry.amount for entry in only.items] == [-150]
        assert (await ledger.entries(GLOBEX, EntryFilter(), Page(10))).items == []

    async def test_a_failure_half_way_leaves_nothing(self, ledger: Ledger, database: Database) -> None:
        async def too_much(books: Books, tenant: TenantId) -> None:
            await books.grant(tenant, "g2", micros(5), "")
            await books.hold(tenant, HoldId("h"), micros(10), TTL, price_version="v1")
            await books.hold(tenant, HoldId("i"), micros(5000), TTL, price_version="v1")

        with pytest.raises(InsufficientCredits):
            await done(ledger, too_much, ACME)
        assert await amounts(ledger, ACME) == (1000, 0)
        await self.assert_clean(database)

    async def test_concurrent_holds_take_exactly_what_is_there(
        self, ledger: Ledger, database: Database
    ) -> None:
        async def attempt(number: int) -> bool:
            try:
                await hold(ledger, f"h{number}", 100)
            except InsufficientCredits:
                return False
            return True

        outcomes = await asyncio.gather(*(attempt(number) for number in range(14)))
        assert outcomes.count(True) == 10
        assert await amounts(ledger, ACME) == (0, 1000)
        await self.assert_clean(database)

    async def test_concurrent_ends_of_a_hold_end_it_once(self, ledger: Ledger, database: Database) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 60)

        async def end(number: int) -> HoldState | None:
            try:
                async with ledger.books(ACME) as books:
                    if number % 2:
                        return (await books.settle(ACME, HoldId("h"), micros(60))).state
                    return (await books.void(ACME, HoldId("h"), "")).state
            except HoldExpired:
                return None

        states = set(await asyncio.gather(*(end(number) for number in range(6))))
        found = await ledger.hold(ACME, HoldId("h"))
        assert found is not None
        assert states == {found.state, None}
        await self.assert_clean(database)

    async def test_one_tenants_movements_leave_the_others_alone(self, ledger: Ledger) -> None:
        async with ledger.books(GLOBEX) as books:
            await books.grant(GLOBEX, "g", micros(7), "")
        await hold(ledger, "h", 1000)
        assert await amounts(ledger, GLOBEX) == (7, 0)

    @pytest.mark.parametrize("deed", ["update", "delete"])
    async def test_the_journal_is_never_changed(self, ledger: Ledger, database: Database, deed: str) -> None:
        statement = update(journal_entries).values(amount=1) if deed == "update" else delete(journal_entries)
        with pytest.raises(exc.DBAPIError, match="never changed"):
            async with database.write(Across("test")) as connection:
                await connection.execute(statement)
        await self.assert_clean(database)

    async def test_the_audit_sees_what_is_wrong(self, ledger: Ledger, database: Database) -> None:
        await hold(ledger, "h", 100)
        await spend(ledger, "h", "s", 10)
        async with database.write(Across("test")) as connection:
            await connection.execute(update(spends).values(amount=11))
            await connection.execute(
                update(accounts)
                .where(accounts.c.tenant == ACME, accounts.c.account == Account.HELD)
                .values(balance=99)
            )
        broken = {finding.invariant for finding in await audit(database, SkewedClock())}
        assert broken == {
            "all_accounts_sum_to_zero",
            "held_equals_open_holds",
            "projection_equals_journal",
            "spends_equal_settled_and_goodwill",
        }
        late = {finding.invariant for finding in await audit(database, SkewedClock(TTL + 301))}
        assert late - broken == {"no_hold_outlives_its_time"}


Deed = Callable[[Books, TenantId], Awaitable[object]]


async def done(ledger: Ledger, deed: Deed, tenant: TenantId) -> None:
    async with ledger.books(tenant) as books:
        await deed(books, tenant)


async def spend_it(books: Books, tenant: TenantId) -> None:
    await books.spend(tenant, HoldId("h"), "s2", micros(1))


async def settle_it(books: Books, tenant: TenantId) -> None:
    await books.settle(tenant, HoldId("h"), micros(40))


async def void_it(books: Books, tenant: TenantId) -> None:
    await books.void(tenant, HoldId("h"), "")


async def renew_it(books: Books, tenant: TenantId) -> None:
    await books.renew(tenant, HoldId("h"), TTL)


async def grant(ledger: Ledger, tenant: TenantId, amount: int) -> tuple[int, bool]:
    async with ledger.books(tenant) as books:
        return await books.grant(tenant, "first", micros(amount), "welcome")


async def hold(ledger: Ledger, name: str, ceiling: int) -> None:
    async with ledger.books(ACME) as books:
        await books.hold(ACME, HoldId(name), micros(ceiling), TTL, price_version="v1")


async def spend(ledger: Ledger, name: str, step: str, amount: int) -> int:
    async with ledger.books(ACME) as books:
        return await books.spend(ACME, HoldId(name), step, micros(amount))


async def refund(ledger: Ledger, key: str, amount: int) -> None:
    async with ledger.books(ACME) as books:
        await books.refund(ACME, HoldId("h"), key, micros(amount), "sorry")


async def amounts(ledger: Ledger, tenant: TenantId) -> Sequence[int]:
    balance = await ledger.balance(tenant)
    return balance.available, balance.held
