"""Money under crashes, interleavings and clocks that jump, and its usage. Subclasses give `stores`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from gateway.credits.audit import REQUEST_KEYS_KEPT, audit
from gateway.credits.ledger import Ledger
from gateway.credits.money import DEFAULT_PRICES, MicroCredits
from gateway.credits.usage import Period
from gateway.credits.values import NO_COURTESY, Courtesy, EntryFilter, HoldId, HoldState
from gateway.errors import HoldExpired, InsufficientCredits, TenantNotFound, ValidationFailed
from gateway.store.bell import Bell
from gateway.store.clock import SkewedClock
from gateway.store.graphs import Graphs
from gateway.store.job_values import JobState, Outcome
from gateway.store.jobs import HOLD_SECONDS, Jobs
from gateway.store.quotas import Quotas
from gateway.store.stores import Stores
from gateway.store.tables import holds, jobs
from gateway.store.tenants import Limits
from palimpsest.v1 import job_pb2
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.paging import Page
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across
from tests.doubles.dying_database import Died, DyingDatabase
from tests.doubles.gateway import graph, order
from tests.examples import one_in

START = 1000
TTL = 60.0
_NUMBERS = count()


def micros(amount: int) -> MicroCredits:
    return MicroCredits(amount)


@dataclass
class Process:
    """What one process does with money. It may die; a later one does it all again."""

    jobs: Jobs
    ledger: Ledger

    @classmethod
    def on(cls, database: Database, clock: SkewedClock) -> "Process":
        ledger, quotas = Ledger(database, clock), Quotas(clock, Limits())
        graphs = Graphs(database, clock, quotas)
        return cls(Jobs(database, clock, ledger, graphs, quotas, Bell()), ledger)

    async def story(self, tenant: TenantId) -> None:
        """A job that is paid and partly refunded, one that failed, one that taught nothing: each once."""
        paid = (await self.jobs.accept(order(graph(tenant), "paid", ceiling=300))).job.id
        await self.jobs.taken(paid)
        await self.jobs.start(paid)
        if not (await self.jobs.find(paid)).finished:  # a step of a job that has ended is not done again
            await self.jobs.spend(paid, "s1", micros(100), 7)
            await self.jobs.spend(paid, "s2", micros(120), 9)
            await self.jobs.renew(paid)
        await self.jobs.finish(paid, ended(JobState.PARTIAL, 100))
        async with self.ledger.books(tenant) as books:
            await books.refund(tenant, paid, "sorry", micros(30), "")
        failed = (await self.jobs.accept(order(graph(tenant), "failed", ceiling=200))).job.id
        await self.jobs.finish(failed, ended(JobState.FAILED, 0))
        nothing = (await self.jobs.accept(order(graph(tenant), "nothing", ceiling=50))).job.id
        if not (await self.jobs.find(nothing)).finished:
            await self.jobs.spend(nothing, "s1", micros(40), 4)
        courtesy = Courtesy(micros(40), micros(1000), micros(1))
        await self.jobs.finish(nothing, ended(JobState.SUCCEEDED, 0, courtesy))


def ended(state: JobState, charge: int, courtesy: Courtesy = NO_COURTESY) -> Outcome:
    return Outcome(state, micros(charge), job_pb2.JobResult(), courtesy=courtesy)


async def told(stores: Stores, tenant: TenantId) -> Sequence[object]:
    """All that the ledger tells of a tenant, without times and ids."""
    entries = await stores.ledger.entries(tenant, EntryFilter(), Page(100))
    balance = await stores.ledger.balance(tenant)
    usage = await stores.usages.of(tenant, Period())
    return [
        [(one.kind, one.account, one.amount, one.balance_after, one.reason) for one in entries.items],
        (balance.available, balance.held),
        (usage.spent, usage.goodwill, usage.jobs, usage.tokens, usage.graphs),
    ]


Deed = tuple[str, int, int]
"""What a worker does: to which of its holds, with how much."""
DEEDS = st.tuples(
    st.sampled_from(["hold", "hold", "spend", "settle", "void", "renew", "sweep", "grant"]),
    st.integers(0, 2),
    st.integers(0, 90),
)
WORKERS = st.lists(st.lists(st.tuples(DEEDS, st.integers(0, 3)), max_size=6), min_size=2, max_size=4)
"""Each deed with how often others may go first."""


class MoneyContract:
    """Subclasses have the fixture `stores`, empty, opened with the fixture `clock`."""

    @pytest.fixture
    def clock(self) -> SkewedClock:
        return SkewedClock()

    async def tenant(self, stores: Stores, name: str, amount: int = START) -> TenantId:
        tenant = TenantId(name)
        await stores.tenants.create(tenant, "")
        async with stores.ledger.books(tenant) as books:
            await books.grant(tenant, "start", micros(amount), "")
        return tenant

    async def assert_clean(self, stores: Stores, clock: SkewedClock | None = None) -> None:
        assert await audit(stores.ledger_database, clock or SkewedClock()) == []

    @pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
    async def test_a_death_at_any_commit_changes_nothing_in_the_end(
        self, stores: Stores, clock: SkewedClock, every: int
    ) -> None:
        """Each seventh commit every day, all of them when there is time."""
        whole = DyingDatabase(stores.ledger_database.engine, "ledger")
        calm = await self.tenant(stores, "calm")
        await Process.on(whole, clock).story(calm)
        expected = await told(stores, calm)
        for before in (True, False):
            for at in range(1, whole.commits + 1, every):
                tenant = await self.tenant(stores, f"{at} {before}")
                dying = DyingDatabase(stores.ledger_database.engine, "ledger", at, before=before)
                with pytest.raises(Died):
                    await Process.on(dying, clock).story(tenant)
                await self.assert_clean(stores)
                await Process.on(stores.ledger_database, clock).story(tenant)
                assert await told(stores, tenant) == expected
        await self.assert_clean(stores)

    @settings(
        max_examples=one_in(20),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(workers=WORKERS)
    async def test_workers_on_one_hot_tenant_never_lose_or_make_a_credit(
        self, stores: Stores, clock: SkewedClock, workers: list[list[tuple[Deed, int]]]
    ) -> None:
        tenant = await self.tenant(stores, f"hot {next(_NUMBERS)}", 200)
        granted = [200]

        async def work(worker: int) -> None:
            for step, ((deed, which, amount), pause) in enumerate(workers[worker]):
                for _ in range(pause):
                    await asyncio.sleep(0)
                hold = HoldId(f"{tenant} {worker % 2} {which}")  # two workers share their holds
                if deed == "grant":
                    granted.append(amount + 1)
                await self.do(stores, tenant, hold, deed, amount, f"{worker} {step}")

        await asyncio.gather(*(work(worker) for worker in range(len(workers))))
        await self.assert_clean(stores)
        balance = await stores.ledger.balance(tenant)
        paid = (await stores.usages.of(tenant, Period())).spent
        assert balance.available + balance.held + paid == sum(granted)

    async def do(
        self, stores: Stores, tenant: TenantId, hold: HoldId, deed: str, amount: int, name: str
    ) -> None:
        if deed == "sweep":
            await stores.ledger.sweep()
            return
        try:
            async with stores.ledger.books(tenant) as books:
                if deed == "grant":
                    await books.grant(tenant, name, micros(amount + 1), "")
                elif deed == "hold":
                    await books.hold(tenant, hold, micros(amount), TTL, price_version="v1")
                elif deed == "spend":
                    await books.spend(tenant, hold, name, micros(amount))
                elif deed == "settle":
                    await books.settle(tenant, hold, micros(amount))
                elif deed == "void":
                    await books.void(tenant, hold, "")
                else:
                    await books.renew(tenant, hold, TTL)
        except (HoldExpired, InsufficientCredits):
            return

    @pytest.mark.parametrize("jump", [-86_400.0, TTL - 5, TTL + 1, 86_400.0])
    async def test_a_hold_that_is_due_ends_once_whoever_comes_first(
        self, stores: Stores, clock: SkewedClock, jump: float
    ) -> None:
        tenant, hold = await self.tenant(stores, "jumpy"), HoldId("h")
        async with stores.ledger.books(tenant) as books:
            await books.hold(tenant, hold, micros(100), TTL, price_version="v1")
            await books.spend(tenant, hold, "s", micros(60))
        clock.skew_seconds = jump

        async def settle() -> None:
            await self.do(stores, tenant, hold, "settle", 60, "")

        await asyncio.gather(settle(), stores.ledger.sweep(), settle(), stores.ledger.sweep())
        clock.skew_seconds = -jump
        await stores.ledger.sweep()
        found = await stores.ledger.hold(tenant, hold)
        assert found is not None
        assert found.state is HoldState.SETTLED or (found.state is HoldState.EXPIRED and jump > TTL)
        assert (await stores.ledger.balance(tenant)).available == START - found.settled
        await self.assert_clean(stores, clock)

    async def test_the_hold_of_a_live_job_is_renewed_and_bears_every_jump(
        self, stores: Stores, clock: SkewedClock
    ) -> None:
        tenant = await self.tenant(stores, "living")
        job = (await stores.jobs.accept(order(graph(tenant), "r", ceiling=100))).job
        assert await stores.ledger.renew_live(HOLD_SECONDS) == 0, "it is young"
        for jump in (0.6 * HOLD_SECONDS, 3 * HOLD_SECONDS, -HOLD_SECONDS, 9 * HOLD_SECONDS):
            clock.skew_seconds = jump
            await stores.sweep()
            found = await stores.ledger.hold(tenant, job.hold.id)
            assert found is not None
            assert found.state is HoldState.OPEN
            assert jump < 9 * HOLD_SECONDS or found.expires_at > job.hold.expires_at + jump * 999_000
        await stores.jobs.finish(job.id, ended(JobState.FAILED, 0))
        assert (await stores.ledger.balance(tenant)).available == START
        await self.assert_clean(stores, clock)

    async def test_the_audit_sees_two_jobs_of_a_request_and_refunds_that_are_not_in_the_journal(
        self, stores: Stores, clock: SkewedClock
    ) -> None:
        tenant = await self.tenant(stores, "broken")
        await Process.on(stores.ledger_database, clock).story(tenant)
        await self.assert_clean(stores)
        mine = jobs.c.tenant == tenant
        async with stores.ledger_database.write(Across("test")) as connection:
            await connection.execute(
                update(jobs).where(mine, jobs.c.request_key == "failed").values(request_key="nothing")
            )
            settled = holds.c.settled - holds.c.refunded > 0
            await connection.execute(update(holds).where(settled).values(refunded=holds.c.refunded + 1))
        broken = [finding.invariant for finding in await audit(stores.ledger_database, clock)]
        assert broken == ["one_job_for_a_request", "refunds_within_settled"]
        async with stores.ledger_database.write(Across("test")) as connection:
            # A key is kept for thirty days; after that it is anybody's.
            old = jobs.c.created_at - REQUEST_KEYS_KEPT
            keyed = update(jobs).where(mine, jobs.c.request_key == "nothing", jobs.c.state == JobState.FAILED)
            await connection.execute(keyed.values(created_at=old))
        broken = [finding.invariant for finding in await audit(stores.ledger_database, clock)]
        assert broken == ["refunds_within_settled"]

    async def test_a_refund_is_of_all_attempts_of_a_job(self, stores: Stores) -> None:
        tenant = await self.tenant(stores, "refunded")
        for hold in ("job", "job.1"):
            async with stores.ledger.books(tenant) as books:
                await books.hold(tenant, HoldId(hold), micros(100), TTL, price_version="v1", job="job")
                await books.spend(tenant, HoldId(hold), hold, micros(80))
                await books.settle(tenant, HoldId(hold), micros(80))

        async def refund(key: str, amount: int) -> bool:
            try:
                async with stores.ledger.books(tenant) as books:
                    await books.refund(tenant, "job", key, micros(amount), "")
            except ValidationFailed:
                return False
            return True

        assert await refund("first", 110)
        assert not await refund("too much", 51)
        assert sorted(await asyncio.gather(*(refund(f"at once {n}", 20) for n in range(4)))) == [
            *(False, False),
            *(True, True),
        ]
        found = [await stores.ledger.hold(tenant, HoldId(hold)) for hold in ("job", "job.1")]
        assert [one.refunded for one in found if one is not None] == [80, 70]
        assert (await stores.ledger.balance(tenant)).available == START - 10
        await self.assert_clean(stores)

    async def test_usage_is_of_a_tenant_and_a_period(self, stores: Stores, clock: SkewedClock) -> None:
        tenant, other = await self.tenant(stores, "used"), await self.tenant(stores, "other")
        process = Process.on(stores.ledger_database, clock)
        await process.story(other)
        begun = (await stores.ledger.balance(tenant)).as_of
        clock.skew_seconds = 3600
        await process.story(tenant)
        async with stores.ledger.books(tenant) as books:
            await books.charge(tenant, "question", micros(5), "RECALL", DEFAULT_PRICES.version)
        clock.skew_seconds = 7200
        end = (await stores.ledger.balance(tenant)).as_of
        usage = await stores.usages.of(tenant, Period())
        assert (usage.spent, usage.goodwill) == (100 - 30 + 5, 120 + 40)
        assert (usage.jobs, usage.tokens, usage.graphs, usage.calls) == (3, 7 + 9 + 4, 1, {})
        assert usage.balance.available == START - 75
        assert await self.sums(stores, tenant, Period(begun, end)) == [75, 160, 3, 20]
        half_an_hour = Instant(begun + 1_800_000_000)
        assert await self.sums(stores, tenant, Period(until=half_an_hour)) == [0, 0, 0, 0]
        assert await self.sums(stores, tenant, Period(since=end)) == [0, 0, 0, 0]
        with pytest.raises(TenantNotFound):
            await stores.usages.of(TenantId("nobody"), Period())

    async def sums(self, stores: Stores, tenant: TenantId, period: Period) -> list[int]:
        usage = await stores.usages.of(tenant, period)
        return [usage.spent, usage.goodwill, usage.jobs, usage.tokens]
