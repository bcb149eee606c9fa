"""What is kept in order: graphs and their settings, keys, limits, suspensions, lists of jobs."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from gateway.credits.money import MicroCredits
from gateway.paging import sealed
from gateway.store.job_values import JobState, Outcome
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
from tests.doubles.gateway import ACME, Refusal, RunningGateway, graph, order, running_gateway

BALANCE = credits_pb2.GetBalanceRequest()


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path) as running:
        yield running


async def every(running: RunningGateway, method: Any, request: Any, items: str, caller: str) -> list[Any]:
    """All items of a list, read two at a time."""
    request.page_size, found = 2, []
    while True:
        page = await running.call(method, request, caller)
        assert len(getattr(page, items)) <= 2
        found += getattr(page, items)
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return found


async def test_graphs_are_listed_by_id_to_their_tenant_alone(running: RunningGateway) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    for name in ("c", "a", "e", "图", "b"):
        settings = graph_pb2.GraphSettings(user_name=f"user of {name}")
        await running.call(stub.CreateGraph, graph_pb2.CreateGraphRequest(graph_id=name, settings=settings))
    await running.call(stub.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="d"), "globex")
    graphs = await every(running, stub.ListGraphs, graph_pb2.ListGraphsRequest(), "graphs", "acme")
    assert [graph.graph_id for graph in graphs] == ["a", "b", "c", "e", "图"]
    assert graphs[0].settings.user_name == "user of a"
    (theirs,) = await every(running, stub.ListGraphs, graph_pb2.ListGraphsRequest(), "graphs", "globex")
    assert theirs.graph_id == "d"


async def test_an_update_changes_what_its_mask_names(running: RunningGateway) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    settings = graph_pb2.GraphSettings(user_name="Ada", time_zone="Europe/Berlin", languages=["en", "de"])
    made = await running.call(stub.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="g", settings=settings))
    request = graph_pb2.UpdateGraphRequest(
        graph_id="g",
        settings=graph_pb2.GraphSettings(user_name="not asked for", languages=["zh"]),
        update_mask=FieldMask(paths=["languages", "time_zone"]),
    )
    changed = (await running.call(stub.UpdateGraph, request)).graph
    assert changed.settings == graph_pb2.GraphSettings(user_name="Ada", languages=["zh"]), "absent is reset"
    assert changed.created_at == made.graph.created_at
    assert changed.updated_at.ToMicroseconds() > made.graph.updated_at.ToMicroseconds()
    again = (await running.call(stub.UpdateGraph, request)).graph
    assert again.updated_at == changed.updated_at, "the same again changes nothing"
    read = await running.call(stub.GetGraph, graph_pb2.GetGraphRequest(graph_id="g"))
    assert read.graph == changed


@pytest.mark.parametrize(
    ("paths", "settings", "field"),
    [
        (["colour"], graph_pb2.GraphSettings(), "update_mask"),
        (["settings.user_name"], graph_pb2.GraphSettings(), "update_mask"),
        (["models.colour"], graph_pb2.GraphSettings(), "update_mask"),
        (["retention.aspect"], graph_pb2.GraphSettings(), "update_mask"),
        (["user_name.first"], graph_pb2.GraphSettings(), "update_mask"),
        (
            ["models"],
            graph_pb2.GraphSettings(models=graph_pb2.ModelSettings(low_model="not-offered")),
            "settings.models.low_model",
        ),
        ([], graph_pb2.GraphSettings(), "update_mask"),
        (["time_zone"], graph_pb2.GraphSettings(time_zone="Europe/Nowhere"), "settings.time_zone"),
    ],
)
async def test_an_update_that_says_nothing_sensible_is_refused(
    running: RunningGateway, paths: list[str], settings: graph_pb2.GraphSettings, field: str
) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    await running.call(stub.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="g"))
    request = graph_pb2.UpdateGraphRequest(
        graph_id="g", settings=settings, update_mask=FieldMask(paths=paths)
    )
    refusal = await running.refused(stub.UpdateGraph, request)
    assert refusal.reason == "VALIDATION_FAILED"
    assert [one.field for one in refusal.details["BadRequest"].field_violations] == [field]


async def test_a_graph_that_is_not_there_is_not_made_by_an_update(running: RunningGateway) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    request = graph_pb2.UpdateGraphRequest(
        graph_id="g", settings=graph_pb2.GraphSettings(), update_mask=FieldMask(paths=["user_name"])
    )
    assert (await running.refused(stub.UpdateGraph, request)).reason == "GRAPH_NOT_FOUND"
    assert (await every(running, stub.ListGraphs, graph_pb2.ListGraphsRequest(), "graphs", "acme")) == []


async def test_keys_are_listed_newest_first_and_revoked_for_good(running: RunningGateway) -> None:
    admin = admin_pb2_grpc.AdminServiceStub(running.channel)
    await running.call(admin.CreateTenant, admin_pb2.CreateTenantRequest(tenant_id="initech"), "operator")
    made = [
        await running.call(
            admin.CreateApiKey,
            admin_pb2.CreateApiKeyRequest(tenant_id="initech", display_name=f"key {number}"),
            "operator",
        )
        for number in range(3)
    ]
    request = admin_pb2.ListApiKeysRequest(tenant_id="initech")
    listed = await every(running, admin.ListApiKeys, request, "api_keys", "operator")
    assert sorted(key.display_name for key in listed) == ["key 0", "key 1", "key 2"]
    created = [key.created_at.ToMicroseconds() for key in listed]
    assert created == sorted(created, reverse=True)
    revoking = admin_pb2.RevokeApiKeyRequest(key_id=made[1].api_key.key_id)
    revoked = (await running.call(admin.RevokeApiKey, revoking, "operator")).api_key
    assert revoked.HasField("revoked_at")
    assert (await running.call(admin.RevokeApiKey, revoking, "operator")).api_key == revoked
    purse = credits_pb2_grpc.CreditServiceStub(running.channel)
    assert (await running.refused(purse.GetBalance, BALANCE, made[1].secret)).reason == "API_KEY_INVALID"
    await running.call(purse.GetBalance, BALANCE, made[0].secret)
    operators = await every(
        running, admin.ListApiKeys, admin_pb2.ListApiKeysRequest(), "api_keys", "operator"
    )
    assert [list(key.scopes) for key in operators] == [[admin_pb2.API_KEY_SCOPE_OPERATOR]]
    nobody = admin_pb2.RevokeApiKeyRequest(key_id="0" * 16)
    assert (await running.refused(admin.RevokeApiKey, nobody, "operator")).reason == "API_KEY_NOT_FOUND"
    request = admin_pb2.ListApiKeysRequest(tenant_id="nobody")
    assert (await running.refused(admin.ListApiKeys, request, "operator")).reason == "TENANT_NOT_FOUND"


async def test_a_suspended_tenant_is_refused_until_that_is_lifted(running: RunningGateway) -> None:
    admin = admin_pb2_grpc.AdminServiceStub(running.channel)
    purse = credits_pb2_grpc.CreditServiceStub(running.channel)
    request = admin_pb2.SuspendTenantRequest(tenant_id="acme", reason="unpaid")
    suspended = await running.call(admin.SuspendTenant, request, "operator")
    assert suspended.tenant.state == admin_pb2.TENANT_STATE_SUSPENDED
    assert await running.call(admin.SuspendTenant, request, "operator") == suspended
    refusal = await running.refused(purse.GetBalance, BALANCE)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "TENANT_SUSPENDED")
    await running.call(purse.GetBalance, BALANCE, "globex")
    request.lift = True
    lifted = await running.call(admin.SuspendTenant, request, "operator")
    assert lifted.tenant.state == admin_pb2.TENANT_STATE_ACTIVE
    await running.call(purse.GetBalance, BALANCE)
    request.tenant_id = "nobody"
    assert (await running.refused(admin.SuspendTenant, request, "operator")).reason == "TENANT_NOT_FOUND"


async def test_limits_are_set_whole(running: RunningGateway) -> None:
    admin = admin_pb2_grpc.AdminServiceStub(running.channel)
    limits = admin_pb2.TenantLimits(requests_per_second=5, max_jobs=2, goodwill_micros_per_day=10)
    request = admin_pb2.SetLimitsRequest(tenant_id="acme", limits=limits)
    assert (await running.call(admin.SetLimits, request, "operator")).tenant.limits == limits
    request.limits.CopyFrom(admin_pb2.TenantLimits(max_in_flight=7))
    assert (await running.call(admin.SetLimits, request, "operator")).tenant.limits == request.limits
    request.limits.max_graphs, request.limits.max_bytes_per_day = 1, 10
    assert (await running.call(admin.SetLimits, request, "operator")).tenant.limits == request.limits
    graphs = graph_pb2_grpc.GraphServiceStub(running.channel)
    await running.call(graphs.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="one"))
    refusal = await running.refused(graphs.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="two"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_GRAPHS")
    assert "QuotaFailure" in refusal.details
    assert not refusal.retryable
    request.limits.max_jobs = -1
    assert (await running.refused(admin.SetLimits, request, "operator")).reason == "VALIDATION_FAILED"
    request = admin_pb2.SetLimitsRequest(tenant_id="nobody", limits=limits)
    assert (await running.refused(admin.SetLimits, request, "operator")).reason == "TENANT_NOT_FOUND"


async def test_jobs_are_listed_by_graph_state_and_kind(running: RunningGateway) -> None:
    jobs, stub = running.stores.jobs, jobs_pb2_grpc.JobServiceStub(running.channel)
    made = [
        (await jobs.accept(order(graph(ACME, f"g{number % 2}"), f"r{number}"))).job.id for number in range(5)
    ]
    await jobs.start(made[2])

    async def listed(**where: Any) -> set[str]:
        found = await every(running, stub.ListJobs, jobs_pb2.ListJobsRequest(**where), "jobs", "acme")
        created = [job.created_at.ToMicroseconds() for job in found]
        assert created == sorted(created, reverse=True)
        assert not any(job.chunks or job.HasField("receipt") for job in found)
        return {job.job_id for job in found}

    assert await listed() == set(made)
    assert await listed(graph_id="g1") == {made[1], made[3]}
    assert await listed(states=[job_pb2.JOB_STATE_RUNNING]) == {made[2]}
    assert await listed(kind=job_pb2.JOB_KIND_INGEST) == set(made)
    assert await listed(kind=job_pb2.JOB_KIND_ERASURE) == set()
    assert await listed(graph_id="of nobody") == set()
    assert await every(running, stub.ListJobs, jobs_pb2.ListJobsRequest(), "jobs", "globex") == []


async def test_a_job_is_asked_to_stop_once_and_not_after_its_end(running: RunningGateway) -> None:
    jobs, stub = running.stores.jobs, jobs_pb2_grpc.JobServiceStub(running.channel)
    mine, other = [(await jobs.accept(order(graph(ACME), key))).job.id for key in ("r1", "r2")]
    asked = jobs_pb2.CancelJobRequest(job_id=mine)
    stopping = (await running.call(stub.CancelJob, asked)).job
    assert (stopping.cancel_requested, stopping.state) == (True, job_pb2.JOB_STATE_QUEUED)
    assert (await running.call(stub.CancelJob, asked)).job == stopping
    assert not (await jobs.find(other)).cancel_requested
    assert (await running.refused(stub.CancelJob, asked, "globex")).reason == "JOB_NOT_FOUND"
    await jobs.finish(mine, Outcome(JobState.CANCELLED, MicroCredits(0), job_pb2.JobResult()))
    refusal = await running.refused(stub.CancelJob, asked)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "JOB_FINISHED")
    admin = admin_pb2_grpc.AdminServiceStub(running.channel)
    suspending = admin_pb2.SuspendTenantRequest(tenant_id="acme")
    await running.call(admin.SuspendTenant, suspending, "operator")
    assert (await jobs.find(other)).cancel_requested


async def charged(running: RunningGateway, key: str, charge: int) -> str:
    """The id of a job of acme's that cost so much."""
    jobs = running.stores.jobs
    job = (await jobs.accept(order(graph(ACME), key))).job.id
    await jobs.spend(job, "step", MicroCredits(charge))
    await jobs.finish(job, Outcome(JobState.SUCCEEDED, MicroCredits(charge), job_pb2.JobResult()))
    return job


async def test_a_charge_is_given_back_at_most_whole(running: RunningGateway) -> None:
    admin = admin_pb2_grpc.AdminServiceStub(running.channel)
    job = await charged(running, "r1", 60)
    request = admin_pb2.RefundChargeRequest(
        tenant_id="acme", job_id=job, amount_micros=40, reason="late", request_id="refund-1"
    )
    first = await running.call(admin.RefundCharge, request, "operator")
    assert (first.entry.amount_micros, first.balance.available_micros) == (40, 980)
    assert (first.entry.reason, first.entry.job_id) == ("late", job)
    again = await running.call(admin.RefundCharge, request, "operator")
    assert (again.entry, again.balance.available_micros) == (first.entry, 980)
    request.amount_micros = 41
    assert (await running.refused(admin.RefundCharge, request, "operator")).reason == "REQUEST_ID_REUSED"
    request.amount_micros, request.request_id = 21, "refund-2"
    assert (await running.refused(admin.RefundCharge, request, "operator")).reason == "VALIDATION_FAILED"
    request.amount_micros = 20
    assert (await running.call(admin.RefundCharge, request, "operator")).balance.available_micros == 1000
    request.job_id, request.request_id = "0" * 8, "refund-3"
    assert (await running.refused(admin.RefundCharge, request, "operator")).reason == "CHARGE_NOT_FOUND"
    request.tenant_id = "globex"
    request.job_id = job
    assert (await running.refused(admin.RefundCharge, request, "operator")).reason == "CHARGE_NOT_FOUND"
    request.tenant_id = "nobody"
    assert (await running.refused(admin.RefundCharge, request, "operator")).reason == "TENANT_NOT_FOUND"


async def test_prices_have_versions_that_never_change(running: RunningGateway) -> None:
    admin = admin_pb2_grpc.AdminServiceStub(running.channel)
    item = admin_pb2.PRICE_ITEM_RECALL
    table = admin_pb2.PriceTable(version="v2", prices=[admin_pb2.Price(item=item, micros=5)])
    request = admin_pb2.SetPricesRequest(table=table)
    assert (await running.call(admin.SetPrices, request, "operator")).table == table
    assert (await running.call(admin.SetPrices, request, "operator")).table == table
    assert (await running.stores.prices.current()).recall == 5
    request.table.prices[0].micros = 6
    refusal = await running.refused(admin.SetPrices, request, "operator")
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ABORTED, "CONFLICT")
    request.table.version = "v3"
    request.table.prices.add(item=item, micros=7)
    assert (await running.refused(admin.SetPrices, request, "operator")).reason == "VALIDATION_FAILED"
    assert (await running.stores.prices.of("v1")).recall == 0, "holds of before keep theirs"


async def test_a_balance_is_watched_over_broken_streams(running: RunningGateway) -> None:
    purse = credits_pb2_grpc.CreditServiceStub(running.channel)
    credentials = (("authorization", f"Bearer {running.keys['acme']}"),)

    def watching(**asked: Any) -> Any:
        return purse.WatchBalance(credits_pb2.WatchBalanceRequest(**asked), metadata=credentials, timeout=20)

    stream = watching()
    first = await stream.read()
    assert first.balance.available_micros == 1000
    await charged(running, "r1", 60)
    seen = [await stream.read()]
    while seen[-1].balance.available_micros != 940 or seen[-1].balance.held_micros:
        seen.append(await stream.read())
    stream.cancel()
    missed = watching(cursor=first.cursor)
    assert (await missed.read()).balance.available_micros == 940, "what was missed is told"
    missed.cancel()
    crossing = watching(threshold_micros=950)
    assert (await crossing.read()).balance.available_micros == 940
    async with running.stores.ledger.books(ACME) as books:
        await books.grant(ACME, "g1", MicroCredits(5), "")
        await books.grant(ACME, "g2", MicroCredits(5), "")
    assert (await crossing.read()).balance.available_micros == 950, "the first grant does not cross it"
    crossing.cancel()
    for position, reason in (
        ("9999.1", "CURSOR_EXPIRED"),
        ("x", "VALIDATION_FAILED"),
        ("1.x", "VALIDATION_FAILED"),
    ):
        ahead = watching(cursor=sealed(ACME, credits_pb2.WatchBalanceRequest(), position))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ahead.read()
        assert Refusal.of(refused.value).reason == reason
    other = credits_pb2.WatchBalanceRequest(cursor=first.cursor)
    theirs = purse.WatchBalance(
        other, metadata=(("authorization", f"Bearer {running.keys['globex']}"),), timeout=20
    )
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await theirs.read()
    assert Refusal.of(refused.value).reason == "VALIDATION_FAILED"
