"""Money by public calls: many ingests at once, small talk and its cap, new prices, a recall with a price."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio

from gateway.credits.audit import audit
from palimpsest.v1 import admin_pb2, credits_pb2, errors_pb2, job_pb2, jobs_pb2, recall_pb2
from services.domain.facts import FactKind, Mention, NothingReason, WorldFact
from services.domain.scope import Scope
from services.llm import tasks
from services.llm.port import Answer
from tests.doubles.engine import ScriptedEngine
from tests.doubles.gateway import Refusal
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.talking import Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAID = "Ann lives in Graz."
GRAZ = WorldFact(FactKind.CLAIM, Mention("Ann"), "lives_in", Mention("Graz"), SAID, 0, SAID)
PRICE = 1_000
"""The minimum, which every short text costs."""
GRAPHS = 5
PATIENT = 290.0
"""Seconds: so many at once take their time on a slow machine."""
_tenants = count()


class Chatty(ScriptedEngine):
    """Finds one fact in every text but thanks; answers when it may go."""

    def __init__(self) -> None:
        super().__init__()
        self.world = tasks.WorldFacts((GRAZ,))
        self.go = asyncio.Event()
        self.go.set()

    async def normalise(self, scope: Scope, task: tasks.Normalise) -> Answer[tasks.Normalised]:
        await self.go.wait()
        if "Much obliged" in task.turns[0].text:
            thanks = tasks.Normalised(nothing=NothingReason.SMALL_TALK)
            return self._answer("normalise", task, thanks)
        return await super().normalise(scope, task)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> Chatty:
    return Chatty()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory, engine: Chatty) -> AsyncIterator[Product]:
    folder: Path = tmp_path_factory.mktemp("money")
    async with a_product(folder, engine) as product:
        yield product
        stores = product.running.gateway.stores
        assert await audit(stores.ledger_database, stores.clock) == []


@pytest_asyncio.fixture(loop_scope="module")
async def tenant(product: Product) -> Tenant:
    return await product.tenant(f"tenant-{next(_tenants)}")


async def ingest_at_once(tenant: Tenant, times: int) -> tuple[Sequence[job_pb2.Job], Sequence[Refusal]]:
    """Accepts as many texts at once, in a few graphs; the ended jobs of some, the refusals of the others."""
    refusals: list[Refusal] = []

    async def one(number: int) -> job_pb2.Job | None:
        memory = Memory(tenant, f"graph {number % GRAPHS}")
        asked = memory.episode(f"{SAID} Remark {number}.")
        try:
            job: job_pb2.Job = (await tenant.call(tenant.memory.AddEpisode, asked, PATIENT)).job
        except grpc.aio.AioRpcError as error:
            refusals.append(Refusal.of(error))
            return None
        waiting = jobs_pb2.WatchJobRequest(job_id=job.job_id)
        async for change in tenant.jobs.WatchJob(waiting, metadata=tenant.metadata, timeout=PATIENT):
            job = change.job
        return job

    jobs = await asyncio.gather(*(one(number) for number in range(times)))
    return [job for job in jobs if job is not None], refusals


AT_ONCE = [10, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]


@pytest.mark.case("50 concurrent ingests")
@pytest.mark.parametrize("times", AT_ONCE)
async def test_many_at_once_with_enough_credits_are_all_accepted(product: Product, times: int) -> None:
    tenant = await product.tenant(f"rich-{times}", times * PRICE)
    jobs, refusals = await ingest_at_once(tenant, times)
    assert (len(jobs), refusals) == (times, [])
    assert {job.state for job in jobs} == {job_pb2.JOB_STATE_SUCCEEDED}
    assert sum(job.credits.spent_micros for job in jobs) == times * PRICE
    assert await balance(tenant) == (0, 0)


@pytest.mark.case("50 concurrent ingests")
@pytest.mark.parametrize("times", AT_ONCE)
async def test_without_enough_exactly_what_is_paid_for_is_accepted(product: Product, times: int) -> None:
    paid = times * 3 // 5
    tenant = await product.tenant(f"poor-{times}", paid * PRICE + PRICE - 1)
    jobs, refusals = await ingest_at_once(tenant, times)
    assert (len(jobs), len(refusals)) == (paid, times - paid)
    assert {(one.code, one.reason, one.retryable) for one in refusals} == {
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "INSUFFICIENT_CREDITS", False)
    }
    assert await balance(tenant) == (PRICE - 1, 0)
    assert sum(entry.amount_micros for entry in await Memory(tenant, "").ledger()) == PRICE - 1


async def test_small_talk_is_a_courtesy_up_to_the_tenants_own_cap(product: Product, tenant: Tenant) -> None:
    other = await product.tenant(f"tenant-{next(_tenants)}")
    limits = admin_pb2.TenantLimits(goodwill_micros_per_day=PRICE + 500)
    asked = admin_pb2.SetLimitsRequest(tenant_id=tenant.name, limits=limits)
    await product.operator.call(product.operator.admin.SetLimits, asked)
    charged = {}
    for one in (tenant, other):
        memory = Memory(one, "notes")
        jobs = [await memory.say(f"Much obliged for number {number}.") for number in range(3)]
        charged[one.name] = [job.credits.spent_micros for job in jobs]
        assert {job.chunks[0].nothing_reason for job in jobs} == {errors_pb2.NOTHING_REASON_SMALL_TALK}
    assert charged == {tenant.name: [0, PRICE, PRICE], other.name: [0, 0, 0]}
    assert (await usage(product, tenant)).goodwill_micros == PRICE
    assert (await usage(product, other)).goodwill_micros == 3 * PRICE


async def usage(product: Product, tenant: Tenant) -> admin_pb2.GetUsageResponse:
    asked = admin_pb2.GetUsageRequest(tenant_id=tenant.name)
    answer: admin_pb2.GetUsageResponse = await product.operator.call(product.operator.admin.GetUsage, asked)
    return answer


async def test_usage_tells_what_was_done_and_paid(product: Product, tenant: Tenant) -> None:
    memory = Memory(tenant, "notes")
    job = await memory.say(f"{SAID} For the sum.")
    await memory.say("Much obliged, all of you.")
    await memory.assert_triples(("Ann", "likes", "tea"), request_id="same")
    await memory.assert_triples(("Ann", "likes", "tea"), request_id="same")
    found = await usage(product, tenant)
    assert found.spent_micros == PRICE + 100
    assert (found.goodwill_micros, found.jobs, found.graphs) == (PRICE, 3, 1)
    assert found.tokens > job.chunks[0].token_count > 0
    assert dict(found.calls) == {"AddEpisode": 2, "AssertTriples": 1}
    assert found.balance.available_micros == (await balance(tenant))[0]
    nobody = admin_pb2.GetUsageRequest(tenant_id="nobody")
    refusal = await product.operator.refused(product.operator.admin.GetUsage, nobody)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "TENANT_NOT_FOUND")


async def set_prices(product: Product, version: str, **micros: int) -> None:
    prices = [
        admin_pb2.Price(item=admin_pb2.PriceItem.Value(f"PRICE_ITEM_{item.upper()}"), micros=amount)
        for item, amount in micros.items()
    ]
    asked = admin_pb2.SetPricesRequest(table=admin_pb2.PriceTable(version=version, prices=prices))
    await product.operator.call(product.operator.admin.SetPrices, asked)


async def test_the_balance_tells_when_it_is_low(product: Product) -> None:
    tenant = await product.tenant("watched", 3 * PRICE)
    watching: Any = tenant.credits.WatchBalance(
        credits_pb2.WatchBalanceRequest(threshold_micros=PRICE), metadata=tenant.metadata
    )
    assert (await watching.read()).balance.available_micros == 3 * PRICE
    memory = Memory(tenant, "notes")
    for number in range(3):
        await memory.say(f"{SAID} Watched {number}.")
    told = (await watching.read()).balance
    watching.cancel()
    assert (told.available_micros, told.held_micros + told.available_micros < PRICE + 1) == (0, True)


# Prices are the whole product's: these two are the last.


async def test_a_job_is_charged_by_the_prices_of_its_acceptance(
    product: Product, engine: Chatty, tenant: Tenant
) -> None:
    memory = Memory(tenant, "notes")
    engine.go.clear()
    accepted = await tenant.call(tenant.memory.AddEpisode, memory.episode(f"{SAID} Under the old prices."))
    await set_prices(product, "dear", ingest_minimum=5 * PRICE, recall=7)
    engine.go.set()
    job = await memory.end_of(accepted.job.job_id)
    assert job.credits.spent_micros == PRICE
    later = await memory.say(f"{SAID} Under the new prices.")
    assert later.credits.spent_micros == 5 * PRICE
    assert {entry.price_version for entry in await memory.ledger(job.job_id)} == {"v1"}
    assert {entry.price_version for entry in await memory.ledger(later.job_id)} == {"dear"}


def question(graph: str) -> recall_pb2.RecallRequest:
    return recall_pb2.RecallRequest(graph_ids=[graph], query="What does Ann like?")


async def test_a_recall_with_a_price_is_charged_for_its_answer_alone(
    product: Product, tenant: Tenant
) -> None:
    await set_prices(product, "of-recalls", asserted_record=1, recall=7)
    memory = Memory(tenant, "notes")
    await memory.assert_triples(("Ann", "likes", "tea"))
    before, _ = await balance(tenant)
    for _ in range(2):
        metadata = (*tenant.metadata, ("x-request-id", "the same"))
        asked = question(memory.graph)
        await tenant.recall.Recall(asked, metadata=metadata, timeout=60)
    await tenant.refused(tenant.recall.Recall, question("of nobody"))
    assert await balance(tenant) == (before - 14, 0)
    charge = (await memory.ledger())[0]
    assert (charge.kind, charge.reason) == (credits_pb2.LEDGER_ENTRY_KIND_CHARGE, "RECALL")
    poor = await product.tenant("six", 7)
    await Memory(poor, "notes").assert_triples(("Ann", "likes", "tea"))
    refusal = await poor.refused(poor.recall.Recall, question("notes"))
    assert (refusal.reason, dict(refusal.info.metadata)) == (
        "INSUFFICIENT_CREDITS",
        {"required": "7", "available": "6"},
    )
