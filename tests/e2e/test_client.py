"""The Python client, async and blocking, against a running product; and against servers in trouble."""

import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from palimpsest import Client, Memory, Patience, sync
from palimpsest.client import name_request
from palimpsest.errors import CallError, NotFound, TryAgain, Unauthenticated
from palimpsest.local import announce
from palimpsest.tls import TlsUnusable
from palimpsest.v1 import (
    credits_pb2,
    graph_pb2,
    job_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
)
from tests.doubles.product import Product, a_product
from tests.e2e.up_process import UpProcess

SERVERS = ["ray", "sqlalchemy", "services", "gateway", "typer", "rich", "pydantic", "mcp", "langgraph"]
HASTY = Patience(first_wait_seconds=0.001, longest_wait_seconds=0.01)


@pytest.fixture
async def product(tmp_path: Path) -> AsyncIterator[Product]:
    async with a_product(tmp_path) as product:
        yield product


@pytest.fixture
async def client(product: Product) -> AsyncIterator[Client]:
    tenant = await product.tenant("acme")
    async with Client(product.running.gateway.target, tenant.key) as client:
        yield client


async def test_what_is_remembered_is_recalled(client: Client) -> None:
    memory = Memory(client, "ada", session="s1")
    assert not await memory.recall("Where does Ada live?")
    moved = datetime(2025, 3, 1, tzinfo=UTC)
    await memory.remember("Ada lives in Oslo.", at=datetime(2024, 1, 1, tzinfo=UTC), wait=True)
    said = [
        {"role": "user", "content": "Ada moved to Graz.", "name": "Bo"},
        {"role": "assistant", "content": "Noted."},
    ]
    await memory.remember(said, at=moved)  # type: ignore[arg-type]  # as an application writes it
    (job,) = await memory.settle()
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    found = await memory.recall("Where does Ada live?", token_budget=500)
    assert found
    assert "Graz" in str(found)
    before = await memory.recall("Where does Ada live?", as_of=datetime(2024, 6, 1, tzinfo=UTC))
    assert "Oslo" in before.text


async def test_the_same_request_id_is_the_same_job(client: Client) -> None:
    memory = Memory(client, "twice")
    at = datetime(2024, 1, 1, tzinfo=UTC)
    first, second = [
        await memory.remember("Ada lives in Oslo.", at=at, wait=True, request_id="once") for _ in range(2)
    ]
    assert first.job_id == second.job_id


async def test_lists_are_read_to_their_end(client: Client) -> None:
    for number in range(5):
        asked = graph_pb2.CreateGraphRequest(graph_id=f"g{number}")
        await client.call(client.graphs.CreateGraph, asked)
    pages = client.pages(client.graphs.ListGraphs, graph_pb2.ListGraphsRequest(page_size=2), "graphs")
    assert [graph.graph_id async for graph in pages] == [f"g{number}" for number in range(5)]


async def test_errors_have_types_and_reasons(client: Client) -> None:
    with pytest.raises(NotFound) as refused:
        await client.call(
            client.memory.GetStatement,
            memory_statements_pb2.GetStatementRequest(graph_id="none", statement_id="x"),
        )
    assert refused.value.reason == "GRAPH_NOT_FOUND"
    async with Client(client.connection.target, "wrong", patience=HASTY) as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.call(stranger.credits.GetBalance, credits_pb2.GetBalanceRequest())


async def test_a_time_without_a_zone_and_a_role_that_is_none_are_refused(client: Client) -> None:
    memory = Memory(client, "g")
    with pytest.raises(ValueError, match="zone"):
        await memory.remember("x", at=datetime(2024, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="role"):
        await memory.remember([{"role": "robot", "content": "x"}])  # type: ignore[typeddict-item]


def failing(times: int, retry_seconds: float | None) -> Any:
    """A method that is unavailable so often, and then answers; it keeps what it was asked."""
    status = status_pb2.Status(code=grpc.StatusCode.UNAVAILABLE.value[0], message="busy")
    if retry_seconds is not None:
        wait = Duration()
        wait.FromMilliseconds(round(1000 * retry_seconds))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=wait))
    seen: list[Any] = []

    async def method(request: Any, **_: Any) -> Any:
        seen.append(request.request_id)
        if len(seen) <= times:
            trailers = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), trailers, "busy")
        return "answer"

    method.seen = seen  # type: ignore[attr-defined]
    return method


async def test_what_may_pass_is_tried_again_under_one_name() -> None:
    async with Client("127.0.0.1:1", patience=HASTY) as client:
        method = failing(3, 0.001)
        assert await client.call(method, memory_ingest_pb2.AddEpisodeRequest()) == "answer"
        assert len(method.seen) == 4
        assert len(set(method.seen)) == 1
        assert method.seen[0]


@pytest.mark.parametrize(("times", "asked", "tries"), [(9, 0.001, 4), (9, 3600, 1), (9, None, 4)])
async def test_it_gives_up_and_says_why(times: int, asked: float | None, tries: int) -> None:
    async with Client("127.0.0.1:1", patience=HASTY) as client:
        method = failing(times, asked)
        with pytest.raises(TryAgain):
            await client.call(method, memory_ingest_pb2.AddEpisodeRequest())
        assert len(method.seen) == tries


async def test_a_server_in_trouble_is_not_asked_ever_more() -> None:
    async with Client("127.0.0.1:1", patience=Patience(4, 0.001, 0.01, budget=5)) as client:
        method = failing(10_000, 0.001)
        for _ in range(20):
            with pytest.raises(CallError):
                await client.call(method, memory_ingest_pb2.AddEpisodeRequest())
        assert len(method.seen) <= 20 + 5 + 2


def test_a_name_is_given_once() -> None:
    request = memory_ingest_pb2.AddEpisodeRequest(request_id="mine")
    name_request(request)
    assert request.request_id == "mine"
    name_request(credits_pb2.GetBalanceRequest())


def test_each_text_of_a_batch_has_a_name_of_its_own() -> None:
    texts = [memory_ingest_pb2.AddEpisodeRequest(request_id=name) for name in ("mine", "", "")]
    batch = memory_ingest_pb2.BatchAddEpisodesRequest(requests=texts)
    name_request(batch)
    names = [one.request_id for one in batch.requests]
    assert names[0] == "mine"
    assert len({*names, ""}) == 4


async def test_the_environment_says_where_and_who(tmp_path: Path) -> None:
    announce(tmp_path, "127.0.0.1:5")
    async with Client.of({"PALIMPSEST_DATA_DIR": str(tmp_path)}) as client:
        assert client.connection.target == "127.0.0.1:5"
    with sync.Client.of({"PALIMPSEST_TARGET": "there:1", "PALIMPSEST_KEY": "pk"}) as blocking:
        assert blocking.within.connection.target == "there:1"
    with pytest.raises(TlsUnusable):
        Client.of({"PALIMPSEST_TLS_AUTHORITIES": str(tmp_path / "none.pem")})


@pytest.mark.milvus
def test_code_that_does_not_await_has_the_same(running: UpProcess) -> None:
    tenant = running.tenant()
    with sync.Client(running.target, tenant.key) as client:
        memory = sync.Memory(client, "blocking")
        job = memory.remember("Ada lives in Oslo.", at=datetime(2024, 1, 1, tzinfo=UTC))
        states = [one.state for one in client.watch(job.job_id)]
        assert states[-1] == job_pb2.JOB_STATE_SUCCEEDED
        assert [one.state for one in memory.settle()] == [job_pb2.JOB_STATE_SUCCEEDED]
        assert "Oslo" in memory.recall("Where does Ada live?").text
        listed = client.pages(client.within.graphs.ListGraphs, graph_pb2.ListGraphsRequest(), "graphs")
        assert [graph.graph_id for graph in listed] == ["blocking"]
        balances = client.stream(client.within.credits.WatchBalance, credits_pb2.WatchBalanceRequest())
        assert next(balances).balance.available_micros > 0
        balances.close()  # type: ignore[attr-defined]  # a generator's
    client.close()


def test_it_needs_no_server_to_be_imported() -> None:
    told = f"import sys, palimpsest.sync; print([name for name in {SERVERS} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
