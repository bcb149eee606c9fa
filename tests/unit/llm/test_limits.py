"""Limits: the breaker, slots by tenant, and the pace that the endpoint sets."""

import asyncio

import pytest

from services.domain.scope import TenantId
from services.llm.openai_engine.breaker import BreakerOpen, CircuitBreaker
from services.llm.openai_engine.limits import Pace, Slots, TokenBudgets
from services.llm.port import ModelRateLimited, ModelRefused, ModelUnavailable

ACME, GLOBEX = TenantId("acme"), TenantId("globex")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def fail(breaker: CircuitBreaker) -> None:
    with pytest.raises(ModelUnavailable), breaker.guard():
        raise ModelUnavailable("down")


def test_failures_in_a_row_open_it_and_a_probe_closes_it() -> None:
    clock = Clock()
    breaker = CircuitBreaker(3, 10, clock)
    for _ in range(3):
        assert not breaker.is_open
        fail(breaker)
    with pytest.raises(BreakerOpen), breaker.guard():
        pytest.fail("nothing may be sent")
    clock.now += 10
    with breaker.guard(), pytest.raises(BreakerOpen), breaker.guard():
        pytest.fail("one probe at a time")
    with breaker.guard():
        pass


def test_a_failed_probe_opens_it_again() -> None:
    clock = Clock()
    breaker = CircuitBreaker(2, 10, clock)
    fail(breaker)
    fail(breaker)
    clock.now += 10
    fail(breaker)
    assert breaker.is_open


def test_an_answer_in_between_starts_the_count_anew() -> None:
    breaker = CircuitBreaker(2, 10, Clock())
    fail(breaker)
    with pytest.raises(ModelRefused), breaker.guard():
        raise ModelRefused("a living endpoint")
    fail(breaker)
    assert not breaker.is_open


def test_a_cancelled_probe_says_nothing_and_blocks_nothing() -> None:
    clock = Clock()
    breaker = CircuitBreaker(1, 10, clock)
    fail(breaker)
    clock.now += 10
    with pytest.raises(asyncio.CancelledError), breaker.guard():
        raise asyncio.CancelledError
    with breaker.guard():
        pass


async def test_a_tenant_has_no_more_than_its_slots_and_leaves_the_rest_to_others() -> None:
    slots = Slots(total=3, per_tenant=2)
    running: list[TenantId] = []
    most: dict[TenantId, int] = {}
    release = asyncio.Event()

    async def call(tenant: TenantId) -> None:
        async with slots.held(tenant):
            running.append(tenant)
            most[tenant] = max(most.get(tenant, 0), running.count(tenant))
            await release.wait()
            running.remove(tenant)

    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(call(ACME))
        group.create_task(call(GLOBEX))
        for _ in range(5):
            await asyncio.sleep(0)
        assert sorted(running) == [ACME, ACME, GLOBEX]
        release.set()
    assert most == {ACME: 2, GLOBEX: 1}
    assert slots.tenants == 0


async def test_a_waiting_tenant_that_gives_up_leaves_nothing_behind() -> None:
    slots = Slots(total=1, per_tenant=1)
    async with slots.held(ACME):
        waiting = asyncio.ensure_future(slots.held(GLOBEX).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert slots.tenants == 1


def test_the_pace_is_the_latest_moment_that_was_asked_for() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.wait_seconds == 0
    pace.hold(5)
    pace.hold(2)
    assert pace.wait_seconds == 5
    clock.now += 4
    assert pace.wait_seconds == 1
    clock.now += 4
    assert pace.wait_seconds == 0


def test_a_debt_of_tokens_is_paid_off_evenly_by_its_tenant_alone() -> None:
    clock = Clock()
    budgets = TokenBudgets(600, clock)
    budgets.spend(ACME, 400)
    assert budgets.wait_seconds(ACME) == 0
    budgets.spend(ACME, 300)
    assert budgets.wait_seconds(ACME) == 10
    assert budgets.wait_seconds(GLOBEX) == budgets.wait_seconds(None) == 0
    clock.now += 4
    assert budgets.wait_seconds(ACME) == pytest.approx(6)
    clock.now += 6
    assert budgets.wait_seconds(ACME) == 0


def test_no_more_than_a_minutes_tokens_are_saved_up_and_full_budgets_forgotten() -> None:
    clock = Clock()
    budgets = TokenBudgets(600, clock)
    budgets.spend(ACME, 1)
    clock.now += 3_600
    budgets.spend(GLOBEX, 660)
    assert (budgets.tenants, budgets.wait_seconds(GLOBEX)) == (1, 6)
    budgets.spend(ACME, 660)
    assert budgets.wait_seconds(ACME) == 6


async def test_a_budget_that_is_far_overdrawn_is_told_at_once() -> None:
    budgets = TokenBudgets(60, Clock())
    budgets.spend(ACME, 160)
    with pytest.raises(ModelRateLimited) as told:
        await budgets.wait(ACME, 99)
    assert told.value.retry_after_seconds == 100
    await budgets.wait(GLOBEX, 0)
    await TokenBudgets(0, Clock()).wait(ACME, 0)
