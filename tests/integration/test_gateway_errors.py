"""The table of errors (design, 06-gateway), by real calls over loopback."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from gateway.errors import InsufficientCredits
from gateway.interceptors.call import current_caller
from gateway.settings import GatewaySettings
from gateway.store.jobs import Jobs
from gateway.store.tenants import Limits, TenantState
from palimpsest.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    credits_pb2,
    credits_pb2_grpc,
    graph_pb2,
    graph_pb2_grpc,
    jobs_pb2,
    jobs_pb2_grpc,
    memory_ingest_pb2,
    memory_pb2_grpc,
)
from palimpsest.v1.episode_pb2 import EPISODE_KIND_CONVERSATION
from services.domain.errors import RevisionNotReady, StoreDown
from services.domain.ids import Revision
from tests.doubles.gateway import ACME, RunningGateway, graph, order, running_gateway

SECRET = "SELECT * FROM passages -- at 10.0.0.7:5432"


class AcceptingServicer:
    """AddEpisode as far as the gateway's own half goes; some texts make it fail."""

    def __init__(self) -> None:
        self.jobs: Jobs | None = None

    async def AddEpisode(
        self, request: memory_ingest_pb2.AddEpisodeRequest, context: Any
    ) -> memory_ingest_pb2.AddEpisodeResponse:
        match request.text:
            case "bug":
                raise RuntimeError(SECRET)
            case "not ready":
                raise RevisionNotReady(Revision(9), Revision(7))
        assert self.jobs is not None
        scope = current_caller().scope(request.graph_id)
        asked = order(scope, request.request_id, ceiling=600, payload=request.text.encode())
        accepted = await self.jobs.accept(asked, max_jobs=3)
        response = memory_ingest_pb2.AddEpisodeResponse(replayed=not accepted.fresh)
        response.job.job_id = accepted.job.id
        return response


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    servicer = AcceptingServicer()
    async with running_gateway(tmp_path, more={"MemoryService": servicer}) as running:
        servicer.jobs = running.stores.jobs
        yield running


def add(text: str = "hello", request_id: str = "r1") -> memory_ingest_pb2.AddEpisodeRequest:
    return memory_ingest_pb2.AddEpisodeRequest(
        graph_id="g", request_id=request_id, text=text, kind=EPISODE_KIND_CONVERSATION
    )


BALANCE = credits_pb2.GetBalanceRequest()


@pytest.mark.parametrize(
    "key",
    [
        "",
        "nonsense",
        "pk_test_0123456789abcdef_" + "0" * 64,
        "pk_test_0123456789abcdef_short",
        "pk_TEST_0123456789abcdef_" + "0" * 64,
    ],
)
async def test_every_bad_key_gets_one_answer(running: RunningGateway, key: str) -> None:
    refusal = await running.refused(
        credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance, BALANCE, key
    )
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAUTHENTICATED, "API_KEY_INVALID")
    assert refusal.text == "no valid API key"
    assert not refusal.retryable


async def test_a_wrong_secret_and_a_revoked_key_get_it_too(running: RunningGateway) -> None:
    get_balance = credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance
    good = running.keys["globex"]
    wrong = good[:-1] + ("0" if good[-1] != "0" else "1")
    assert (await running.refused(get_balance, BALANCE, wrong)).text == "no valid API key"
    found = await running.stores.keys.find(good.split("_")[2])  # type: ignore[arg-type]  # any text
    assert found is not None
    await running.stores.keys.revoke(found.id)
    assert (await running.refused(get_balance, BALANCE, "globex")).text == "no valid API key"


async def test_a_missing_scope_is_named(running: RunningGateway) -> None:
    create = graph_pb2_grpc.GraphServiceStub(running.channel).CreateGraph
    refusal = await running.refused(create, graph_pb2.CreateGraphRequest(graph_id="g"), "reader")
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
    assert refusal.info.metadata == {"scope": "WRITE"}


async def test_operators_read_no_memory_and_tenants_do_not_operate(running: RunningGateway) -> None:
    get_balance = credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance
    assert (await running.refused(get_balance, BALANCE, "operator")).reason == "SCOPE_MISSING"
    create = admin_pb2_grpc.AdminServiceStub(running.channel).CreateTenant
    refusal = await running.refused(create, admin_pb2.CreateTenantRequest(tenant_id="t"), "acme")
    assert (refusal.reason, refusal.info.metadata["scope"]) == ("SCOPE_MISSING", "OPERATOR")


async def test_a_suspended_tenant_is_told_so(running: RunningGateway) -> None:
    await running.stores.tenants.set_state(ACME, TenantState.SUSPENDED)
    get_balance = credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance
    refusal = await running.refused(get_balance, BALANCE)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "TENANT_SUSPENDED")


async def test_validation_tells_every_violation(running: RunningGateway) -> None:
    bad = memory_ingest_pb2.AddEpisodeRequest(graph_id="a\x00b", kind=EPISODE_KIND_CONVERSATION)
    refusal = await running.refused(memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode, bad)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED")
    fields = {violation.field for violation in refusal.details["BadRequest"].field_violations}
    assert fields == {"graph_id", "request_id", "content"}
    assert not refusal.retryable


async def test_an_unknown_graph_and_anothers_get_one_answer(running: RunningGateway) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    await running.call(stub.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="g"), "globex")
    anothers = await running.refused(stub.GetGraph, graph_pb2.GetGraphRequest(graph_id="g"))
    unknown = await running.refused(stub.GetGraph, graph_pb2.GetGraphRequest(graph_id="h"))
    assert (anothers.code, anothers.reason) == (grpc.StatusCode.NOT_FOUND, "GRAPH_NOT_FOUND")
    assert (anothers.code, anothers.text, anothers.info) == (unknown.code, unknown.text, unknown.info)
    assert anothers.details["ResourceInfo"].resource_name == "g"
    assert running.facts.asked == []


async def test_no_credits(running: RunningGateway) -> None:
    add_episode = memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode
    await running.call(add_episode, add())
    refusal = await running.refused(add_episode, add(request_id="r2"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "INSUFFICIENT_CREDITS")
    assert refusal.info.metadata == {"required": "600", "available": "400"}
    assert "QuotaFailure" in refusal.details
    assert not refusal.retryable


async def test_a_request_id_names_one_payload(running: RunningGateway) -> None:
    add_episode = memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode
    first = await running.call(add_episode, add())
    again = await running.call(add_episode, add())
    assert (first.job.job_id, first.replayed) == (again.job.job_id, False)
    assert again.replayed
    refusal = await running.refused(add_episode, add("other"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    assert refusal.details["ResourceInfo"].resource_name == "r1"
    of_globex = await running.call(add_episode, add("other"), "globex")
    assert not of_globex.replayed


async def test_too_many_jobs(running: RunningGateway) -> None:
    async with running.stores.ledger.books(ACME) as books:
        await books.grant(ACME, "more", 10_000, "")  # type: ignore[arg-type]  # micro-credits
    add_episode = memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode
    for number in range(3):
        await running.call(add_episode, add(request_id=f"r{number}"))
    refusal = await running.refused(add_episode, add(request_id="r3"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_JOBS")
    assert "QuotaFailure" in refusal.details
    assert refusal.retryable


async def test_a_deadline_too_short_does_nothing(running: RunningGateway) -> None:
    add_episode = memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode
    await running.channel.channel_ready()
    # Whose time-out comes first, the client's or ours, is open; that nothing is done is not.
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await running.call(add_episode, add(), seconds=0.03)
    assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert await running.stores.jobs.unfinished() == []


async def test_a_bug_tells_nothing_but_the_request_id(running: RunningGateway) -> None:
    add_episode = memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode
    refusal = await running.refused(add_episode, add("bug"), metadata=(("x-request-id", "mine-1"),))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert refusal.text == "internal error"
    assert refusal.request_id == "mine-1"
    assert not any("SELECT" in str(detail) for detail in refusal.details.values())


async def test_a_store_that_is_down_and_a_revision_not_there_may_be_tried_again(
    running: RunningGateway,
) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    await running.call(stub.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="g"))
    running.facts.error = StoreDown("graph")
    refusal = await running.refused(stub.GetGraph, graph_pb2.GetGraphRequest(graph_id="g"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    assert refusal.info.metadata == {"component": "graph"}
    assert refusal.retryable
    add_episode = memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode
    refusal = await running.refused(add_episode, add("not ready"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "REVISION_NOT_READY")
    assert refusal.retryable


async def test_what_is_not_built_says_so(running: RunningGateway) -> None:
    stub = jobs_pb2_grpc.JobServiceStub(running.channel)
    retrying = jobs_pb2.RetryJobRequest(job_id="x", request_id="r")
    refusal = await running.refused(stub.RetryJob, retrying)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_IMPLEMENTED")
    unknown = await running.refused(stub.GetJob, jobs_pb2.GetJobRequest(job_id="x"))
    assert (unknown.code, unknown.reason) == (grpc.StatusCode.NOT_FOUND, "JOB_NOT_FOUND")


async def test_a_tenants_rate_is_limited(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running:
        await running.stores.tenants.set_limits(ACME, Limits(requests_per_second=1, request_burst=1))
        get_balance = credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance
        for _ in range(2):
            await running.call(get_balance, BALANCE)
        refusal = await running.refused(get_balance, BALANCE)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
        assert refusal.retryable
        await running.call(get_balance, BALANCE, "globex")


async def test_a_peer_that_guesses_keys_must_wait_but_good_keys_pass(tmp_path: Path) -> None:
    settings = GatewaySettings(gateway_port=0, failed_keys_per_minute=3, drain_seconds=0.2)
    async with running_gateway(tmp_path, settings) as running:
        get_balance = credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance
        await running.call(get_balance, BALANCE)
        for _ in range(3):
            assert (await running.refused(get_balance, BALANCE, "bad")).reason == "API_KEY_INVALID"
        refusal = await running.refused(get_balance, BALANCE, "bad")
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RATE_LIMITED")
        assert refusal.retryable
        await running.call(get_balance, BALANCE)


def test_the_refusal_for_credits_names_no_time_to_wait() -> None:
    assert InsufficientCredits(2, 1).retry_after_seconds is None


async def test_scopes_are_made_of_the_key_alone(running: RunningGateway) -> None:
    add_episode = memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode
    answer = await running.call(add_episode, add())
    job = (await running.stores.jobs.unfinished())[0]
    assert (job.id, job.scope) == (answer.job.job_id, graph(ACME))
