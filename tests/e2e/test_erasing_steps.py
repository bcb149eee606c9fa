"""An erasure that dies at one of its steps: the next start goes on, and nothing is left."""

from dataclasses import replace
from pathlib import Path

import pytest

from palimpsest.v1 import entity_pb2, job_pb2, jobs_pb2, privacy_pb2
from services.domain.scope import Scope
from services.runtime.resources import Resources
from services.stores.errors import StoreUnavailable
from services.stores.memory.fences import Purged, Rewritten
from services.stores.memory.sql import SqlMemory
from tests.doubles.engine import ScriptedEngine
from tests.doubles.product import a_product
from tests.e2e.erasing import CANARY, erased, fill, holding
from tests.e2e.talking import Memory
from tests.e2e.test_erasing_crashes import ERASE, NOTES, again


class StuckMemory(SqlMemory):
    """Can't do `step`; `met` counts who tried."""

    step, met = "", 0

    def _stick(self, step: str) -> None:
        if step == self.step:
            self.met += 1
            raise StoreUnavailable("memory")

    async def erase(self, scope: Scope) -> None:
        self._stick("erase")
        await super().erase(scope)

    async def compact(self) -> None:
        self._stick("compact")
        await super().compact()

    async def rewrite(self, scope: Scope, rewritten: Rewritten) -> None:
        self._stick("rewrite")
        await super().rewrite(scope, rewritten)

    async def purge(self, scope: Scope, purged: Purged) -> None:
        self._stick("purge")
        await super().purge(scope, purged)


class Stuck:
    """Makes the services' memory one that sticks at a step."""

    def __init__(self, step: str) -> None:
        self._step = step
        self.memory: StuckMemory | None = None

    def __call__(self, resources: Resources) -> Resources:
        assert isinstance(resources.memory, SqlMemory)
        self.memory = StuckMemory(resources.memory._database.engine)
        self.memory.step = self._step
        return replace(resources, memory=self.memory)

    @property
    def met(self) -> bool:
        return self.memory is not None and self.memory.met > 0


@pytest.mark.slow
@pytest.mark.parametrize("step", ["erase", "compact"])
async def test_a_graph_is_erased_whatever_step_a_crash_cut(tmp_path: Path, step: str) -> None:
    """Before anything is gone; and when all is, while the fence is up."""
    engine, stuck = ScriptedEngine(), Stuck(step)
    async with a_product(tmp_path, engine=engine, behind=stuck) as product:
        tenant = await product.tenant("acme")
        await fill(tenant, engine, "notes", CANARY)
        begun = (await tenant.call(tenant.privacy.EraseGraph, ERASE)).erasure
        while not stuck.met:
            await tenant.call(tenant.jobs.ListJobs, jobs_pb2.ListJobsRequest())
        assert bool(await product.resources.memory.rows(NOTES)) == (step == "erase")
    async with again(tmp_path, tenant.key, engine) as (_, tenant):
        done = await erased(tenant, tenant.privacy.EraseGraph, ERASE)
        assert (done.erasure_id, done.state) == (begun.erasure_id, job_pb2.JOB_STATE_SUCCEEDED)
        assert {one.store: dict(one.removed) for one in done.reports}["graph"]["statements"]
        assert holding(tmp_path, CANARY) == set()
        await Memory(tenant, "notes").assert_triples(("Ada", "likes", "rum"))


@pytest.mark.slow
@pytest.mark.parametrize("step", ["rewrite", "purge"])
async def test_an_entity_is_erased_whatever_step_a_crash_cut(tmp_path: Path, step: str) -> None:
    """While texts are rewritten; and once the revision is published, before the past is purged."""
    engine, stuck = ScriptedEngine(), Stuck(step)
    person = entity_pb2.EntityRef(name=CANARY)
    request = privacy_pb2.EraseEntityRequest(graph_id="notes", entity=person, request_id="forget")
    async with a_product(tmp_path, engine=engine, behind=stuck) as product:
        tenant = await product.tenant("acme")
        memory = Memory(tenant, "notes")
        triples = ((CANARY, "likes", "rum"), ("Ada", "knows", CANARY), ("Ada", "likes", "tea"))
        for at, triple in enumerate(triples):
            await memory.assert_triples(triple, at=f"2025-01-0{at + 1}")
        begun = (await tenant.call(tenant.privacy.EraseEntity, request)).erasure
        while not stuck.met:
            await tenant.call(tenant.jobs.ListJobs, jobs_pb2.ListJobsRequest())
    async with again(tmp_path, tenant.key, engine) as (_, tenant):
        done = await erased(tenant, tenant.privacy.EraseEntity, request)
        assert (done.erasure_id, done.state) == (begun.erasure_id, job_pb2.JOB_STATE_SUCCEEDED)
        assert holding(tmp_path, CANARY) == set()
        assert {(fact[0], fact[2]) for fact in await Memory(tenant, "notes").facts()} == {("Ada", "tea")}
