"""An erasure in the middle of something: of a job, of a crash, of a store that is away."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.credits.audit import audit
from palimpsest.v1 import (
    entity_pb2,
    graph_pb2,
    job_pb2,
    jobs_pb2,
    memory_entities_pb2,
    privacy_pb2,
    recall_pb2,
)
from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope, TenantId
from services.runtime.resources import Resources
from services.stores.errors import StoreUnavailable
from services.stores.graph.sql import SqlGraphStore
from services.stores.vectors.port import Collection
from tests.doubles.engine import ScriptedEngine
from tests.doubles.gateway import graph
from tests.doubles.product import Product, Tenant, a_product
from tests.doubles.vectors import ArrayVectorStore
from tests.e2e.erasing import CANARY, erased, fill, hears, holding
from tests.e2e.talking import Memory, balance
from tests.e2e.test_forgotten import HeldEngine

NOTES = graph(TenantId("acme"), "notes")
ERASE = privacy_pb2.EraseGraphRequest(graph_id="notes", request_id="erase")


class Stuck(ArrayVectorStore):
    """Can't erase while `stuck`; `met` counts who tried."""

    stuck, met = True, 0

    async def erase(self, scope: Scope) -> None:
        if self.stuck:
            self.met += 1
            raise StoreUnavailable("vectors")
        await super().erase(scope)


class StuckGraph(SqlGraphStore):
    """Can't purge while `stuck`."""

    stuck, met = True, 0

    async def purge(
        self, scope: Scope, statements: Sequence[StatementId], entities: Sequence[EntityId]
    ) -> None:
        if self.stuck:
            self.met += 1
            raise StoreUnavailable("graph")
        await super().purge(scope, statements, entities)


@asynccontextmanager
async def again(folder: Path, key: str, engine: ScriptedEngine) -> AsyncIterator[tuple[Product, Tenant]]:
    """The product after a crash, for the same key."""
    async with a_product(folder, engine=engine) as product:
        yield product, Tenant("acme", key, product.channel)


async def until_met(stuck: Stuck | StuckGraph, tenant: Tenant) -> None:
    """The erasure has come so far that it can't go on."""
    while not stuck.met:
        await tenant.call(tenant.jobs.ListJobs, jobs_pb2.ListJobsRequest())


async def test_a_job_that_is_under_way_is_ended_and_paid_back(tmp_path: Path) -> None:
    engine = HeldEngine()
    async with a_product(tmp_path, engine=engine) as product:
        tenant = await product.tenant("acme")
        memory = Memory(tenant, "notes")
        hears(engine, CANARY, f"I like tea and my {CANARY} does.")
        before = await balance(tenant)
        asked = memory.episode(f"I like tea and my {CANARY} does.", "2025-01-01", session_id="s")
        job = (await tenant.call(tenant.memory.AddEpisode, asked)).job
        await engine.asking.wait()
        done = await erased(tenant, tenant.privacy.EraseGraph, ERASE)
        assert done.state == job_pb2.JOB_STATE_SUCCEEDED
        assert await balance(tenant) == before
        gone = await tenant.refused(tenant.jobs.GetJob, jobs_pb2.GetJobRequest(job_id=job.job_id))
        assert gone.reason == "JOB_NOT_FOUND"
        # What its model answers now finds nobody who would write it down.
        engine.go.set()
        await memory.assert_triples(("Ada", "likes", "rum"))
        assert holding(tmp_path, CANARY) == set()
        stores = product.running.gateway.stores
        assert await audit(stores.ledger_database, stores.clock) == []


@pytest.mark.slow
async def test_an_erasure_goes_on_after_a_crash_in_its_middle(tmp_path: Path) -> None:
    engine, vectors = ScriptedEngine(), Stuck(64)

    def behind(resources: Resources) -> Resources:
        vectors._dimension = resources.vectors.dimension
        return replace(resources, vectors=vectors)

    async with a_product(tmp_path, engine=engine, behind=behind) as product:
        tenant = await product.tenant("acme")
        memory = await fill(tenant, engine, "notes", CANARY)
        begun = (await tenant.call(tenant.privacy.EraseGraph, ERASE)).erasure
        await until_met(vectors, tenant)
        assert await product.resources.graph.rows(NOTES) == {}
        assert await vectors.count(NOTES, Collection.PASSAGES)
        refusals = [
            await tenant.refused(tenant.graphs.GetGraph, graph_pb2.GetGraphRequest(graph_id="notes")),
            await tenant.refused(
                tenant.recall.Recall, recall_pb2.RecallRequest(graph_ids=["notes"], query="tea?")
            ),
            await tenant.refused(tenant.memory.AddEpisode, memory.episode("I like rum.", "2025-05-05")),
        ]
        assert {refusal.reason for refusal in refusals} == {"GRAPH_BEING_ERASED"}
        assert not any(refusal.retryable for refusal in refusals)
    async with again(tmp_path, tenant.key, engine) as (product, tenant):
        done = await erased(tenant, tenant.privacy.EraseGraph, ERASE)
        assert (done.erasure_id, done.state) == (begun.erasure_id, job_pb2.JOB_STATE_SUCCEEDED)
        removed = {report.store: dict(report.removed) for report in done.reports}
        assert removed["graph"]["statements"]  # as counted before the crash
        assert removed["vectors"]["passages"] == 3
        assert holding(tmp_path, CANARY) == set()
        made = await tenant.call(tenant.graphs.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="notes"))
        assert made.created


@pytest.mark.slow
async def test_the_erasure_of_an_entity_goes_on_after_a_crash_in_its_middle(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    stuck: list[StuckGraph] = []

    def behind(resources: Resources) -> Resources:
        assert isinstance(resources.graph, SqlGraphStore)
        stuck.append(StuckGraph(resources.graph._database.engine))
        return replace(resources, graph=stuck[0])

    person = entity_pb2.EntityRef(name=CANARY)
    request = privacy_pb2.EraseEntityRequest(graph_id="notes", entity=person, request_id="forget")
    async with a_product(tmp_path, engine=engine, behind=behind) as product:
        tenant = await product.tenant("acme")
        memory = Memory(tenant, "notes")
        triples = ((CANARY, "likes", "rum"), ("Ada", "knows", CANARY), ("Ada", "likes", "tea"))
        for at, triple in enumerate(triples):
            await memory.assert_triples(triple, at=f"2025-01-0{at + 1}")
        begun = (await tenant.call(tenant.privacy.EraseEntity, request)).erasure
        await until_met(stuck[0], tenant)
        late = memory.episode("I like rum.", "2025-05-05")
        refusal = await tenant.refused(tenant.memory.AddEpisode, late)
        assert (refusal.reason, refusal.retryable) == ("ENTITY_BEING_ERASED", True)
        assert await memory.statements()  # reads are answered
    async with again(tmp_path, tenant.key, engine) as (product, tenant):
        done = await erased(tenant, tenant.privacy.EraseEntity, request)
        assert (done.erasure_id, done.state) == (begun.erasure_id, job_pb2.JOB_STATE_SUCCEEDED)
        assert holding(tmp_path, CANARY) == set()
        memory = Memory(tenant, "notes")
        assert {(fact[0], fact[2]) for fact in await memory.facts()} == {("Ada", "tea")}
        where = memory_entities_pb2.GetEntityRequest(graph_id="notes", entity=person)
        assert (await tenant.refused(tenant.memory.GetEntity, where)).reason == "ENTITY_NOT_FOUND"
        await tenant.call(
            tenant.memory.AddEpisode, memory.episode("I like rum.", "2025-05-05", request_id="late")
        )
