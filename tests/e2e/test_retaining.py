"""Retention through the whole product: the job that time begins, answers meanwhile, and the way back."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from palimpsest.v1 import (
    graph_pb2,
    job_pb2,
    jobs_pb2,
    memory_graph_pb2,
    memory_statements_pb2,
    privacy_pb2,
)
from services.domain.scope import Scope, TenantId
from services.runtime.resources import Resources
from services.stores.errors import StoreUnavailable
from services.stores.vectors.port import Collection
from tests.doubles.gateway import graph
from tests.doubles.product import Tenant, a_product
from tests.doubles.vectors import ArrayVectorStore
from tests.e2e.erasing import erased
from tests.e2e.talking import Memory, day, names

NOTES = graph(TenantId("acme"), "notes")
OFTEN = {"sweep_seconds": 0.1}
DAY = 86_400


class StuckRows(ArrayVectorStore):
    """Can't take rows out of what is searched every day while `stuck`; `met` counts who tried."""

    stuck, met = True, 0

    async def delete(self, scope: Scope, collection: Collection, ids: Sequence[str]) -> None:
        if self.stuck and collection is Collection.STATEMENTS:
            self.met += 1
            raise StoreUnavailable("vectors")
        await super().delete(scope, collection, ids)


async def moved(tenant: Tenant) -> Memory:
    """Ana lived in Hall, and lives in Graz; what ended a year ago is to be archived."""
    memory = Memory(tenant, "notes")
    await memory.assert_triples(("Ana", "lives_in", "Hall"), at="2015-01-01")
    await memory.assert_triples(("Ana", "lives_in", "Graz"), at="2018-01-01")
    await retain(tenant, 365)
    return memory


async def retain(tenant: Tenant, *days: int) -> None:
    rules = [graph_pb2.RetentionRule() for _ in days]
    for rule, number in zip(rules, days, strict=True):
        rule.archive_after.FromSeconds(number * DAY)
    request = graph_pb2.UpdateGraphRequest(
        graph_id="notes",
        settings=graph_pb2.GraphSettings(retention=rules),
        update_mask=FieldMask(paths=["retention"]),
    )
    await tenant.call(tenant.graphs.UpdateGraph, request)


async def ended_job(tenant: Tenant) -> job_pb2.Job:
    """The one job of retention there is, once it has ended."""
    request = jobs_pb2.ListJobsRequest(kind=job_pb2.JOB_KIND_RETENTION)
    while True:
        jobs = (await tenant.call(tenant.jobs.ListJobs, request)).jobs
        job: job_pb2.Job
        if jobs and jobs[0].HasField("finished_at"):
            [job] = jobs
            return job


async def archived(memory: Memory) -> list[str]:
    listed = await memory.statements(include_ended=True)
    return [one.object.entity.name for one in listed if one.archived]


async def test_what_ended_long_ago_is_archived_and_comes_back(tmp_path: Path) -> None:
    async with a_product(tmp_path, settings=OFTEN) as product:
        tenant, other = await product.tenant("acme"), await product.tenant("other")
        memory = await moved(tenant)
        hall = ("Ana", "lives_in", "Hall")
        job = await ended_job(tenant)
        assert (job.state, job.result.counts.statements_archived) == (job_pb2.JOB_STATE_SUCCEEDED, 1)
        assert job.credits.spent_micros == 0
        assert await archived(memory) == ["Hall"]
        assert hall in names((await memory.recall("Where did Ana live in 2016?")).facts)
        assert hall in names((await memory.recall("Where does Ana live?", as_of=day("2016-01-01"))).facts)
        # Not found any more, and still told as what the answer replaced.
        assert names((await memory.recall("Where does Ana live?")).facts)[0] == ("Ana", "lives_in", "Graz")
        read = await tenant.call(tenant.graphs.GetGraph, graph_pb2.GetGraphRequest(graph_id="notes"))
        assert read.graph.counts.archived == 1
        audit = await tenant.call(
            tenant.privacy.ListAuditEvents, privacy_pb2.ListAuditEventsRequest(graph_id="notes")
        )
        assert "archive" in [event.action for event in audit.events]

        back = memory_graph_pb2.RestoreArchivedRequest(graph_id="notes", request_id="back")
        refused = await other.refused(other.memory.RestoreArchived, back)
        assert refused.reason == "GRAPH_NOT_FOUND"
        answers = [await tenant.call(tenant.memory.RestoreArchived, back) for _ in range(2)]
        assert [answer.restored_count for answer in answers] == [1, 1]
        assert answers[0] == answers[1]
        assert await archived(memory) == []
        unknown = memory_graph_pb2.RestoreArchivedRequest(
            graph_id="notes", statement_ids=["00000000-0000-5000-8000-000000000000"], request_id="none"
        )
        gone = await tenant.refused(tenant.memory.RestoreArchived, unknown)
        assert gone.reason == "STATEMENT_NOT_FOUND"

        await tenant.call(tenant.memory.EndStatement, end_of((await memory.statements())[0].statement_id))
        await retain(tenant)
        stores = product.running.gateway.stores
        assert await stores.retention.due() == []
        await erased(
            tenant, tenant.privacy.EraseGraph, privacy_pb2.EraseGraphRequest(graph_id="notes", request_id="e")
        )
        assert await product.resources.memory.rows(NOTES) == {}


def end_of(statement: str) -> memory_statements_pb2.EndStatementRequest:
    return memory_statements_pb2.EndStatementRequest(
        graph_id="notes", statement_id=statement, request_id="end"
    )


@pytest.mark.slow
async def test_an_archiving_that_a_crash_cut_is_completed(tmp_path: Path) -> None:
    vectors = StuckRows(64)

    def behind(resources: Resources) -> Resources:
        vectors._dimension = resources.vectors.dimension
        return replace(resources, vectors=vectors)

    async with a_product(tmp_path, settings=OFTEN, behind=behind) as product:
        tenant = await product.tenant("acme")
        memory = await moved(tenant)
        while not vectors.met:
            await tenant.call(tenant.jobs.ListJobs, jobs_pb2.ListJobsRequest())
        # Told as archived while its row lies in both places; as of its time it is found once.
        found = names((await memory.recall("Where did Ana live in 2016?")).facts)
        assert found.count(("Ana", "lives_in", "Hall")) == 1
    vectors.stuck = False
    async with a_product(tmp_path, settings=OFTEN, behind=behind) as product:
        tenant = Tenant("acme", tenant.key, product.channel)
        job = await ended_job(tenant)
        assert (job.state, job.result.counts.statements_archived) == (job_pb2.JOB_STATE_SUCCEEDED, 1)
        assert await archived(Memory(tenant, "notes")) == ["Hall"]
        counts = [await vectors.count(NOTES, one) for one in (Collection.STATEMENTS, Collection.ARCHIVE)]
        assert counts == [1, 1]
