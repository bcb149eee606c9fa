"""RebuildGraph as clients have it: what is derived is made anew, and told."""

from pathlib import Path

from palimpsest.v1 import job_pb2, memory_graph_pb2
from services.domain.scope import GraphId, Scope, TenantId
from services.llm.offline import OfflineEngine
from services.stores.vectors.port import Collection
from tests.doubles.product import a_product
from tests.e2e.talking import Memory


async def test_what_is_derived_is_made_anew_and_told(tmp_path: Path) -> None:
    async with a_product(tmp_path, engine=OfflineEngine()) as product:
        there = Memory(await product.tenant("acme"), "notes")
        tenant = there.tenant
        await there.assert_triples(("Ana", "lives_in", "Graz"), ("Ana", "knows", "Gus"))
        before, scope = await there.facts(), Scope(TenantId("acme"), GraphId("notes"))
        lost = [one.statement_id for one in await there.statements()]
        await product.resources.vectors.delete(scope, Collection.STATEMENTS, lost)
        asked = memory_graph_pb2.RebuildGraphRequest(graph_id="notes", request_id="rebuild")
        accepted = await tenant.call(tenant.memory.RebuildGraph, asked)
        job = await there.end_of(accepted.job.job_id)
        assert (job.state, job.kind) == (job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_KIND_REBUILD)
        assert job.result.rebuilt.repaired == {"statement without vector": 2}
        assert job.result.rebuilt.vectors >= 4
        assert not job.result.rebuilt.left
        assert job.credits.spent_micros == 0
        assert await there.facts() == before
        assert set(await product.resources.vectors.fetch(scope, Collection.STATEMENTS, lost)) == set(lost)
        assert (await tenant.call(tenant.memory.RebuildGraph, asked)).job.job_id == job.job_id
        nowhere = memory_graph_pb2.RebuildGraphRequest(graph_id="nowhere", request_id="nowhere")
        assert (await tenant.refused(tenant.memory.RebuildGraph, nowhere)).reason == "GRAPH_NOT_FOUND"
