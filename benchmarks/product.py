"""Ingest throughput and recall latency of the whole product in one process, by the public API.

Ingest: short texts through the offline engine, and a model server that answers at once and after 800 ms;
each also beside the time that its model calls alone would take. Recall: p50, p95 and calls a second over one
graph of assertions, current and as of a past date, alone and with 8 callers at once. Embeddings come from the
model server, at once, so that what is measured is ours.

Run: python -m benchmarks.product [--texts N] [--facts N] [--questions N]
"""

import argparse
import asyncio
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import structlog

from gateway.convert.times import timestamp
from gateway.credits.money import MicroCredits
from gateway.keys import KeyScope
from gateway.settings import GatewaySettings
from gateway.up import bring_up
from palimpsest.v1 import (
    entity_pb2,
    episode_pb2,
    graph_pb2_grpc,
    job_pb2,
    jobs_pb2,
    jobs_pb2_grpc,
    memory_ingest_pb2,
    memory_pb2_grpc,
    recall_pb2,
    recall_pb2_grpc,
)
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.llm.settings import EmbeddingSettings, ModelSettings
from services.runtime.settings import ServiceSettings

TENANT = TenantId("bench")
DIMENSION = 384
GRAPHS = 10
BATCH = 500
DAY = 86_400_000_000
PEOPLE, PLACES, TOOLS = 200, 50, 100


@contextmanager
def model_server(delay_ms: int, dimension: int = DIMENSION) -> Iterator[str]:
    """The base URL of a model server in a process of its own, so that it does not share our loop."""
    command = [sys.executable, "-m", "tests.doubles.model_server", "--port", "0"]
    command += ["--delay-ms", str(delay_ms), "--dimension", str(dimension)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield str(next(iter(json.loads(process.stdout.readline()).values())))
    finally:
        process.terminate()
        process.wait()


class Client:
    """The public API of one running product, with a key."""

    def __init__(self, channel: grpc.aio.Channel, key: str) -> None:
        self.memory = memory_pb2_grpc.MemoryServiceStub(channel)
        self.recall = recall_pb2_grpc.RecallServiceStub(channel)
        self.jobs = jobs_pb2_grpc.JobServiceStub(channel)
        self.graphs = graph_pb2_grpc.GraphServiceStub(channel)
        self._metadata = (("authorization", f"Bearer {key}"),)

    async def __call__(self, method: Any, request: Any, seconds: float = 120) -> Any:
        return await method(request, metadata=self._metadata, timeout=seconds)

    def watch(self, request: jobs_pb2.WatchJobRequest) -> Any:
        """The job after each change, until it has ended."""
        return self.jobs.WatchJob(request, metadata=self._metadata, timeout=250)

    async def ended(self, id: str) -> job_pb2.Job:
        """A job as it ends."""
        job = job_pb2.Job()
        async for answer in self.watch(jobs_pb2.WatchJobRequest(job_id=id)):
            job = answer.job
        return job


async def open_client(stack: AsyncExitStack, base_url: str, embeddings_url: str) -> Client:
    """A product with the offline engine, or with the model server at `base_url`."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    model = (
        {"engine": "openai", "model": ModelSettings(base_url=base_url, medium_model="test-medium")}
        if base_url
        else {}
    )
    embedding = EmbeddingSettings(base_url=embeddings_url, model="test-embedding", dimension=DIMENSION)
    services = ServiceSettings(data_dir=folder, embedder="openai", embedding=embedding, **model)  # type: ignore[arg-type]
    gateway = GatewaySettings(data_dir=folder, gateway_port=0, tenant_requests_per_second=100_000)
    running = await bring_up(services, gateway, stack)
    stores = running.gateway.stores
    await stores.tenants.create(TENANT, "")
    async with stores.ledger.books(TENANT) as books:
        await books.grant(TENANT, "start", MicroCredits(10**12), "")
    _, key = await stores.keys.create(TENANT, "bench", [KeyScope.ERASE])
    channel = grpc.aio.insecure_channel(running.gateway.target)
    stack.push_async_callback(channel.close)
    return Client(channel, key)


async def ingest(client: Client, texts: int) -> tuple[float, job_pb2.JobReceipt]:
    """Seconds until every text is resolved, and one job's receipt."""
    started = time.perf_counter()

    async def one(number: int) -> str:
        request = memory_ingest_pb2.AddEpisodeRequest(
            graph_id=f"g{number % GRAPHS}",
            request_id=f"text-{number}",
            kind=episode_pb2.EPISODE_KIND_CONVERSATION,
            text=f"Person{number} works at Company{number % 7}. Person{number} lives in City{number % 11}.",
            wait_for=episode_pb2.CHUNK_STAGE_RESOLVED,
        )
        return str((await client(client.memory.AddEpisode, request, 250)).job.job_id)

    ids = await asyncio.gather(*(one(number) for number in range(texts)))
    seconds = time.perf_counter() - started
    jobs = [await client.ended(job) for job in ids]  # a text that is resolved has its job settled next
    unfinished = [job for job in jobs if job.state != job_pb2.JOB_STATE_SUCCEEDED]
    assert not unfinished, f"{len(unfinished)} jobs did not succeed, the first: {unfinished[0]}"
    return seconds, jobs[-1].receipt


async def fill(client: Client, facts: int) -> float:
    """Asserts `facts` triples in one graph; answers the seconds that took."""
    started = time.perf_counter()
    for first in range(0, facts, BATCH):
        claims = [_claim(number) for number in range(first, min(first + BATCH, facts))]
        request = memory_ingest_pb2.AssertTriplesRequest(
            graph_id="big", request_id=f"facts-{first}", claims=claims
        )
        await client(client.memory.AssertTriples, request, 300)
    return time.perf_counter() - started


def _claim(number: int) -> memory_ingest_pb2.ClaimInput:
    predicate, target = (
        ("lives_in", f"Place {number % PLACES}")
        if number % 3 == 0
        else ("uses", f"Tool {number % TOOLS} of kind {number // PEOPLE}")
    )
    said = timestamp(Instant(1_600_000_000_000_000 + number * DAY // 8))
    return memory_ingest_pb2.ClaimInput(
        subject=entity_pb2.EntityRef(name=f"Person {number % PEOPLE}", type=entity_pb2.ENTITY_TYPE_PERSON),
        predicate=predicate,
        object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name=target)),
        valid_at=said,
        reference_time=said,
    )


async def ask(client: Client, number: int, as_of: bool) -> float:
    """Milliseconds of one question."""
    request = recall_pb2.RecallRequest(
        graph_ids=["big"],
        query=f"Which tool does Person {number % PEOPLE} use, and where do they live?",
        max_facts=10,
        token_budget=2_000,
    )
    if as_of:
        request.as_of.CopyFrom(timestamp(Instant(1_620_000_000_000_000)) or request.as_of)
    started = time.perf_counter()
    answer = await client(client.recall.Recall, request)
    assert answer.facts or as_of, "a question about a known person found nothing"
    return (time.perf_counter() - started) * 1000


async def one_by_one(work: Callable[[int], Awaitable[float]], times: int) -> tuple[list[float], float]:
    started = time.perf_counter()
    return [await work(number) for number in range(times)], time.perf_counter() - started


async def at_once(
    work: Callable[[int], Awaitable[float]], times: int, callers: int
) -> tuple[list[float], float]:
    started = time.perf_counter()
    numbers = iter(range(times))

    async def caller() -> list[float]:
        return [await work(number) for number in numbers]

    found = await asyncio.gather(*(caller() for _ in range(callers)))
    return [one for part in found for one in part], time.perf_counter() - started


def show(name: str, milliseconds: Sequence[float], seconds: float) -> None:
    cuts = statistics.quantiles(milliseconds, n=20)
    print(
        f"  {name:32} p50 {statistics.median(milliseconds):7.1f} ms   p95 {cuts[-1]:7.1f} ms   "
        f"{len(milliseconds) / seconds:6.1f} a second"
    )


async def measure_ingest(name: str, delay_ms: int | None, texts: int) -> None:
    async with AsyncExitStack() as stack:
        embeddings = stack.enter_context(model_server(0))
        base_url = "" if delay_ms is None else stack.enter_context(model_server(delay_ms))
        client = await open_client(stack, base_url, embeddings)
        await ingest_warm_up(client)
        seconds, receipt = await ingest(client, texts)
    calls = sum(stage.calls for stage in receipt.stages)
    line = f"  {name:24} {texts / seconds:7.1f} texts a second   {calls} model calls a text"
    if delay_ms:
        settings = GatewaySettings()
        ideal = texts * calls * delay_ms / 1000 / settings.chunk_concurrency
        line += f"   {seconds / ideal:.2f} times calls × delay ÷ {settings.chunk_concurrency} at once"
    print(line)


async def ingest_warm_up(client: Client) -> None:
    """The first text loads the engine and makes the collections."""
    request = memory_ingest_pb2.AddEpisodeRequest(
        graph_id="warm",
        request_id="warm",
        kind=episode_pb2.EPISODE_KIND_CONVERSATION,
        text="Ann works at Initech. Ann lives in Graz.",
        wait_for=episode_pb2.CHUNK_STAGE_RESOLVED,
    )
    await client(client.memory.AddEpisode, request, 250)


async def measure_recall(facts: int, questions: int) -> None:
    async with AsyncExitStack() as stack:
        client = await open_client(stack, "", stack.enter_context(model_server(0)))
        seconds = await fill(client, facts)
        print(f"  {facts} facts asserted, {facts / seconds:.0f} a second")
        cold = await ask(client, 0, as_of=False)
        print(f"  first question {cold:.0f} ms")
        for as_of in (False, True):
            name = "as of a past date" if as_of else "current"
            show(name, *await one_by_one(lambda n, past=as_of: ask(client, n, past), questions))  # type: ignore[misc]
        show("current, 8 callers at once", *await at_once(lambda n: ask(client, n, False), questions, 8))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--facts", type=int, default=5_000)
    parser.add_argument("--questions", type=int, default=200)
    arguments = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    print(f"ingest, {arguments.texts} texts of two sentences in {GRAPHS} graphs")
    for name, delay_ms in (("offline engine", None), ("model at once", 0), ("model after 800 ms", 800)):
        asyncio.run(measure_ingest(name, delay_ms, arguments.texts))
    print("recall")
    asyncio.run(measure_recall(arguments.facts, arguments.questions))


if __name__ == "__main__":
    main()
