"""What the gateway serves by itself: graphs, jobs, credits, administration; two tenants apart."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from gateway.credits.money import MicroCredits
from gateway.keys import KeyScope
from gateway.store.job_values import Job, JobState, Outcome
from palimpsest.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    credits_pb2,
    credits_pb2_grpc,
    graph_pb2,
    graph_pb2_grpc,
    job_pb2,
    jobs_pb2,
    jobs_pb2_grpc,
)
from palimpsest.v1.episode_pb2 import ChunkStage
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.sql.isolation import Across
from tests.doubles.gateway import ACME, RunningGateway, graph, order, running_gateway, sqlite_stores

CURIOUS_IDS = ["ü-图", "a'b\"c", 'x") or true or ("', "a|b", "_", "-", "a/../b", " "]


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path) as running:
        yield running


def settings(name: str = "Ada") -> graph_pb2.GraphSettings:
    return graph_pb2.GraphSettings(user_name=name, time_zone="Europe/Berlin", languages=["en"])


async def test_a_graph_is_made_once_and_read(running: RunningGateway) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    asked = graph_pb2.CreateGraphRequest(graph_id="g", settings=settings())
    made = await running.call(stub.CreateGraph, asked)
    assert made.created
    assert made.graph.settings == settings()
    again = await running.call(stub.CreateGraph, asked)
    assert (again.created, again.graph.created_at) == (False, made.graph.created_at)
    read = await running.call(stub.GetGraph, graph_pb2.GetGraphRequest(graph_id="g"))
    assert (read.graph.counts.statements, read.graph.revision.revision) == (3, 7)
    other = graph_pb2.CreateGraphRequest(graph_id="g", settings=settings("Bob"))
    refusal = await running.refused(stub.CreateGraph, other)
    assert (refusal.code, refusal.reason) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "GRAPH_ALREADY_EXISTS",
    )


@pytest.mark.parametrize("zone", ["Europe/Nowhere", "Etc", "America"])
async def test_an_unknown_time_zone_is_refused(running: RunningGateway, zone: str) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    asked = graph_pb2.CreateGraphRequest(graph_id="g", settings=graph_pb2.GraphSettings(time_zone=zone))
    refusal = await running.refused(stub.CreateGraph, asked)
    assert refusal.reason == "VALIDATION_FAILED"
    (violation,) = refusal.details["BadRequest"].field_violations
    assert violation.field == "settings.time_zone"


@pytest.mark.parametrize("name", CURIOUS_IDS)
async def test_curious_ids_are_names_like_any_other(running: RunningGateway, name: str) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    await running.call(stub.CreateGraph, graph_pb2.CreateGraphRequest(graph_id=name), "globex")
    read = await running.call(stub.GetGraph, graph_pb2.GetGraphRequest(graph_id=name), "globex")
    assert read.graph.graph_id == name
    refusal = await running.refused(stub.GetGraph, graph_pb2.GetGraphRequest(graph_id=name), "acme")
    assert refusal.reason == "GRAPH_NOT_FOUND"


async def test_an_operator_brings_a_tenant_to_its_first_call(running: RunningGateway) -> None:
    admin = admin_pb2_grpc.AdminServiceStub(running.channel)
    asked = admin_pb2.CreateTenantRequest(tenant_id="initech", display_name="Initech")
    made = await running.call(admin.CreateTenant, asked, "operator")
    assert (made.created, made.tenant.state) == (True, admin_pb2.TENANT_STATE_ACTIVE)
    assert not (await running.call(admin.CreateTenant, asked, "operator")).created
    renamed = admin_pb2.CreateTenantRequest(tenant_id="initech", display_name="Initrode")
    refusal = await running.refused(admin.CreateTenant, renamed, "operator")
    assert refusal.reason == "TENANT_ALREADY_EXISTS"
    key = await running.call(
        admin.CreateApiKey, admin_pb2.CreateApiKeyRequest(tenant_id="initech"), "operator"
    )
    assert list(key.api_key.scopes) == [admin_pb2.API_KEY_SCOPE_READ, admin_pb2.API_KEY_SCOPE_WRITE]
    grant = admin_pb2.GrantCreditsRequest(
        tenant_id="initech", amount_micros=5_000_000, reason="pilot", request_id="g1"
    )
    granted = await running.call(admin.GrantCredits, grant, "operator")
    assert (granted.balance.available_micros, granted.replayed) == (5_000_000, False)
    again = await running.call(admin.GrantCredits, grant, "operator")
    assert (again.balance.available_micros, again.replayed) == (5_000_000, True)
    assert again.entry == granted.entry
    grant.amount_micros = 1
    assert (await running.refused(admin.GrantCredits, grant, "operator")).reason == "REQUEST_ID_REUSED"
    purse = credits_pb2_grpc.CreditServiceStub(running.channel)
    balance = await running.call(purse.GetBalance, credits_pb2.GetBalanceRequest(), key.secret)
    assert balance.balance.available_micros == 5_000_000


async def test_operators_keys_are_made_apart(running: RunningGateway) -> None:
    admin = admin_pb2_grpc.AdminServiceStub(running.channel)
    scope = admin_pb2.API_KEY_SCOPE_OPERATOR
    made = await running.call(admin.CreateApiKey, admin_pb2.CreateApiKeyRequest(scopes=[scope]), "operator")
    asked = admin_pb2.CreateTenantRequest(tenant_id="initech")
    assert (await running.call(admin.CreateTenant, asked, made.secret)).created
    for bad in (
        admin_pb2.CreateApiKeyRequest(tenant_id="acme", scopes=[scope]),
        admin_pb2.CreateApiKeyRequest(),
    ):
        assert (await running.refused(admin.CreateApiKey, bad, "operator")).reason == "VALIDATION_FAILED"
    nobody = admin_pb2.CreateApiKeyRequest(tenant_id="nobody")
    assert (await running.refused(admin.CreateApiKey, nobody, "operator")).reason == "TENANT_NOT_FOUND"
    grant = admin_pb2.GrantCreditsRequest(tenant_id="nobody", amount_micros=1, request_id="g")
    assert (await running.refused(admin.GrantCredits, grant, "operator")).reason == "TENANT_NOT_FOUND"
    assert await running.stores.keys.init_operator() is None


async def test_an_operators_key_that_has_run_out_locks_nobody_out(tmp_path: Path) -> None:
    stores = await sqlite_stores(tmp_path)
    await stores.keys.create(None, "old", [KeyScope.OPERATOR], expires_at=Instant(1))
    assert await stores.keys.init_operator() is not None
    assert await stores.keys.init_operator() is None
    await stores.close()


async def test_no_secret_is_kept_anywhere(running: RunningGateway, tmp_path: Path) -> None:
    secrets = [key.rpartition("_")[2].encode() for key in running.keys.values()]
    kept = contents(tmp_path)
    assert kept
    assert not any(secret in content for secret in secrets for content in kept)


def contents(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir()]


async def accepted(running: RunningGateway, request_key: str = "r1") -> Job:
    return (await running.stores.jobs.accept(order(graph(ACME), request_key, ceiling=300))).job


def chunk(index: int, stage: ChunkStage.ValueType) -> job_pb2.JobChunk:
    return job_pb2.JobChunk(index=index, stage=stage)


async def test_a_job_is_watched_to_its_end_and_a_broken_watch_goes_on(running: RunningGateway) -> None:
    stub: Any = jobs_pb2_grpc.JobServiceStub(running.channel)
    shown = (("authorization", f"Bearer {running.keys['acme']}"),)
    job = await accepted(running)
    first = stub.WatchJob(jobs_pb2.WatchJobRequest(job_id=job.id), metadata=shown, timeout=30)
    told = await first.read()
    assert told.job.state == job_pb2.JOB_STATE_QUEUED
    assert told.job.credits.held_micros == 300
    await running.stores.jobs.start(job.id)
    told = await first.read()
    assert told.job.state == job_pb2.JOB_STATE_RUNNING
    first.cancel()
    progress = running.stores.progress
    await progress.record(job.id, [chunk(0, ChunkStage.CHUNK_STAGE_PREPROCESSED)])
    await progress.record(job.id, [chunk(0, ChunkStage.CHUNK_STAGE_RESOLVED)])
    await running.stores.jobs.spend(job.id, "understand/0", MicroCredits(100))
    await running.stores.jobs.finish(
        job.id, Outcome(JobState.SUCCEEDED, MicroCredits(100), job_pb2.JobResult())
    )
    request = jobs_pb2.WatchJobRequest(job_id=job.id, cursor=told.cursor)
    rest = [message.job async for message in stub.WatchJob(request, metadata=shown, timeout=30)]
    assert [one.chunks[0].stage for one in rest] == [
        ChunkStage.CHUNK_STAGE_PREPROCESSED,
        ChunkStage.CHUNK_STAGE_RESOLVED,
        ChunkStage.CHUNK_STAGE_RESOLVED,
    ]
    assert [one.state for one in rest] == [
        job_pb2.JOB_STATE_RUNNING,
        job_pb2.JOB_STATE_RUNNING,
        job_pb2.JOB_STATE_SUCCEEDED,
    ]
    final = await running.call(stub.GetJob, jobs_pb2.GetJobRequest(job_id=job.id))
    assert final.job == rest[-1]
    assert (final.job.credits.spent_micros, final.job.credits.refunded_micros) == (100, 200)


async def test_a_cursor_of_another_job_is_refused(running: RunningGateway) -> None:
    stub: Any = jobs_pb2_grpc.JobServiceStub(running.channel)
    shown = (("authorization", f"Bearer {running.keys['acme']}"),)
    one, other = await accepted(running, "r1"), await accepted(running, "r2")
    watch = stub.WatchJob(jobs_pb2.WatchJobRequest(job_id=one.id), metadata=shown, timeout=30)
    cursor = (await watch.read()).cursor
    watch.cancel()
    request = jobs_pb2.WatchJobRequest(job_id=other.id, cursor=cursor)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await stub.WatchJob(request, metadata=shown, timeout=30).read()
    assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_cursor_whose_changes_are_gone_has_expired(running: RunningGateway) -> None:
    stub: Any = jobs_pb2_grpc.JobServiceStub(running.channel)
    shown = (("authorization", f"Bearer {running.keys['acme']}"),)
    job = await accepted(running)
    await running.stores.progress.record(job.id, [chunk(0, ChunkStage.CHUNK_STAGE_PREPROCESSED)])
    watch = stub.WatchJob(jobs_pb2.WatchJobRequest(job_id=job.id), metadata=shown, timeout=30)
    cursor = (await watch.read()).cursor
    watch.cancel()
    # As the sweep does, a week later.
    async with running.stores.progress_database.write(Across("test")) as connection:
        await connection.exec_driver_sql("DELETE FROM job_events")
    request = jobs_pb2.WatchJobRequest(job_id=job.id, cursor=cursor)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await stub.WatchJob(request, metadata=shown, timeout=30).read()
    assert failure.value.code() is grpc.StatusCode.OUT_OF_RANGE
    fresh = stub.WatchJob(jobs_pb2.WatchJobRequest(job_id=job.id), metadata=shown, timeout=30)
    assert len((await fresh.read()).job.chunks) == 1
    fresh.cancel()


async def test_jobs_and_credits_of_one_tenant_are_nothing_to_another(running: RunningGateway) -> None:
    job = await accepted(running)
    jobs_stub: Any = jobs_pb2_grpc.JobServiceStub(running.channel)
    theirs = await running.refused(jobs_stub.GetJob, jobs_pb2.GetJobRequest(job_id=job.id), "globex")
    absent = await running.refused(jobs_stub.GetJob, jobs_pb2.GetJobRequest(job_id="absent"), "globex")
    assert (theirs.code, theirs.text, theirs.info) == (absent.code, absent.text, absent.info)
    assert theirs.reason == "JOB_NOT_FOUND"
    purse = credits_pb2_grpc.CreditServiceStub(running.channel)
    balance = await running.call(purse.GetBalance, credits_pb2.GetBalanceRequest(), "globex")
    assert (balance.balance.available_micros, balance.balance.held_micros) == (1000, 0)
    listed = await running.call(
        purse.ListLedgerEntries, credits_pb2.ListLedgerEntriesRequest(job_id=job.id), "globex"
    )
    assert list(listed.entries) == []


async def test_the_ledger_is_listed_by_pages(running: RunningGateway) -> None:
    for number in range(3):
        await accepted(running, f"r{number}")
    stub = credits_pb2_grpc.CreditServiceStub(running.channel)
    request = credits_pb2.ListLedgerEntriesRequest(kinds=[credits_pb2.LEDGER_ENTRY_KIND_HOLD], page_size=4)
    first = await running.call(stub.ListLedgerEntries, request)
    request.page_token = first.next_page_token
    second = await running.call(stub.ListLedgerEntries, request)
    assert (len(first.entries), len(second.entries), second.next_page_token) == (4, 2, "")
    assert [entry.request_id for entry in [*first.entries, *second.entries]] == [
        name for name in ("r2", "r1", "r0") for _ in range(2)
    ]
    refusal = await running.refused(stub.ListLedgerEntries, request, "globex")
    assert refusal.reason == "VALIDATION_FAILED"


async def test_fifty_calls_of_each_tenant_at_once_stay_apart(running: RunningGateway) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)

    async def one(tenant: str, number: int) -> None:
        mine = graph_pb2.GraphSettings(user_name=f"{tenant}-{number}")
        asked = graph_pb2.CreateGraphRequest(graph_id=f"g{number}", settings=mine)
        await running.call(stub.CreateGraph, asked, tenant)
        read = await running.call(stub.GetGraph, graph_pb2.GetGraphRequest(graph_id=f"g{number}"), tenant)
        assert read.graph.settings.user_name == f"{tenant}-{number}"

    await asyncio.gather(*(one(tenant, number) for number in range(25) for tenant in ("acme", "globex")))
    assert {scope.tenant for scope in running.facts.asked} == {ACME, TenantId("globex")}
