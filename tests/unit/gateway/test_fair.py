"""Tenants take turns: jobs that wait, and chunks."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ingest.durable import DurableEngine, DurableSettings, Run
from gateway.ingest.fair import TRACKED_TENANTS, FairGate, Turns
from services.domain.scope import TenantId

A, B, C = TenantId("a"), TenantId("b"), TenantId("c")


def test_who_hands_in_many_jobs_waits_for_those_who_come_after() -> None:
    now = [100]
    turns = Turns(lambda: now[0])
    many = [turns.next(A) for _ in range(50)]
    assert many == sorted(set(many))
    now[0] = 110
    one = turns.next(B)
    assert sum(turn < one for turn in many) == 10
    now[0] = 200
    assert turns.next(B) > max(many), "nobody waits for ever"


def test_turns_remember_so_many_tenants() -> None:
    turns = Turns(lambda: 0)
    for number in range(TRACKED_TENANTS + 5):
        turns.next(TenantId(f"t{number}"))
    assert len(turns._last) == TRACKED_TENANTS


async def entered(gate: FairGate, waiting: Sequence[TenantId]) -> list[TenantId]:
    """In which order they are let in, one leaving after the other."""
    order: list[TenantId] = []

    async def one(tenant: TenantId) -> None:
        async with gate.place(tenant):
            order.append(tenant)
            await asyncio.sleep(0)

    async with gate.place(C):
        tasks = [asyncio.ensure_future(one(tenant)) for tenant in waiting]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    return order


async def test_tenants_take_turns() -> None:
    assert await entered(FairGate(1), [A, A, A, A, B, B]) == [A, B, A, B, A, A]


@given(waiting=st.lists(st.sampled_from([A, B, C]), max_size=30), places=st.integers(1, 4))
async def test_all_are_let_in_and_the_gate_is_as_it_was(waiting: list[TenantId], places: int) -> None:
    gate = FairGate(places)
    assert sorted(await entered(gate, waiting)) == sorted(waiting)
    assert (gate._free, dict(gate._inside), dict(gate._waiting)) == (places, {}, {})


@pytest.mark.parametrize("let_in", [False, True])
async def test_who_leaves_the_queue_takes_no_place(let_in: bool) -> None:
    gate = FairGate(1)
    holder = gate.place(A)
    await holder.__aenter__()
    waiting = asyncio.ensure_future(gate._enter(B))
    await asyncio.sleep(0)
    if let_in:
        await holder.__aexit__(None, None, None)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    if not let_in:
        await holder.__aexit__(None, None, None)
    assert (gate._free, dict(gate._inside), dict(gate._waiting)) == (1, {}, {})


async def test_workflows_begin_in_the_order_of_their_turns(tmp_path: Path) -> None:
    engine = DurableEngine(DurableSettings(f"sqlite:///{tmp_path / 'workflows.db'}", "test", concurrency=1))
    begun: list[str] = []
    go, all_done = asyncio.Event(), asyncio.Event()

    async def workflow(_run: Run, argument: str) -> None:
        begun.append(argument)
        await go.wait()
        if len(begun) == 5:
            all_done.set()

    engine.register("order", workflow)
    try:
        await engine.launch()
        turns = Turns(lambda: 0)
        for name, tenant in (("a1", A), ("a2", A), ("a3", A), ("a4", A), ("b1", B)):
            await engine.start("order", name, name, turns.next(tenant))
        go.set()
        async with asyncio.timeout(60):
            await all_done.wait()
    finally:
        await engine.close()
    assert begun.index("b1") <= 2, "before the third of those who came first"
