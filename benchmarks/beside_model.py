"""Beside the model: what ingest costs over the time that its model calls take, on PostgreSQL.

Pace: short texts of several graphs, a model server that takes 800 ms a call and serves the embeddings too, 16
of everything at once. Prints the time beside the ideal, calls × 0.8 s ÷ 16, and the processor time of this
process, which services and gateway share. Then, with a server that answers at once and one text at a time,
what each stage costs beside its model calls, per fact. Ends with 1 where the pace misses 1.3 times the ideal.

A PostgreSQL server of its own, with the safety of a disk off as in tests; vectors in arrays.

Run: python -m benchmarks.beside_model [--texts N] [--graphs N] [--delay-ms N] [--single N]
"""

import argparse
import asyncio
import logging
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
import structlog

from benchmarks.product import model_server
from gateway.ingest.durable import migrate_workflows
from palimpsest.connection import Connection
from palimpsest.v1 import episode_pb2, job_pb2, memory_ingest_pb2
from palimpsest.watching import wait_for
from services.llm.openai_embedder import OpenAIEmbedder
from services.llm.openai_engine import OpenAIEngine
from services.llm.port import Embedder, Vectors
from services.llm.settings import EmbeddingSettings, ModelSettings
from services.runtime.resources import Resources
from services.stores.sql.engine import engine_for
from services.stores.sql.grants import grant
from services.stores.sql.migrations import upgrade
from tests.doubles.embedder import HashEmbedder
from tests.doubles.postgres_server import SERVER_ROLE, PostgresServer, as_server
from tests.doubles.product import a_product
from tests.doubles.schemas import SCHEMAS
from tests.machine import postgres_programs

AT_ONCE = 16
MOST = 1.3
"""Times the ideal."""
BATCH = 50


@dataclass
class Counted:
    """An embedder whose calls are counted and timed."""

    embedder: Embedder
    calls: int = 0
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    async def passages(self, texts: Sequence[str]) -> Vectors:
        with self._one():
            return await self.embedder.passages(texts)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        with self._one():
            return await self.embedder.queries(texts)

    @contextmanager
    def _one(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.calls += 1
        self.seconds += time.perf_counter() - began


@dataclass
class Told:
    """What services said that they did, from the log: milliseconds by call."""

    milliseconds: Counter[str] = field(default_factory=Counter)
    times: Counter[str] = field(default_factory=Counter)

    def __call__(self, _: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if event.get("event") == "answered":
            self.milliseconds[event["rpc"]] += event["milliseconds"]
            self.times[event["rpc"]] += 1
        raise structlog.DropEvent


@dataclass(frozen=True, slots=True)
class Bench:
    """A running product, whom to call, and its embedder."""

    connection: Connection
    embedder: Counted


@contextmanager
def a_database() -> Iterator[str]:
    """The URL of a migrated database on a server of its own, as servers of the product see it."""
    programs = postgres_programs()
    if programs is None:
        sys.exit("PostgreSQL's server programs are not installed (see `make doctor`)")
    server = PostgresServer(programs)
    server.start()
    try:
        with server.database() as url:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE ROLE {SERVER_ROLE} LOGIN")
            asyncio.run(_migrate(url))
            migrate_workflows(url, SERVER_ROLE)
            yield as_server(url)
    finally:
        server.stop()


async def _migrate(url: str) -> None:
    engine = engine_for(url)
    for schema in SCHEMAS.values():
        await upgrade(engine, schema)
        await grant(engine, schema, SERVER_ROLE)
    await engine.dispose()


@asynccontextmanager
async def a_bench(url: str, name: str, delay_ms: int) -> AsyncIterator[Bench]:
    """The product on that database; the model server, and what it serves, takes `delay_ms` a call."""
    async with AsyncExitStack() as stack:
        own = HashEmbedder()
        base_url = stack.enter_context(model_server(delay_ms, own.dimension))
        engine = OpenAIEngine(
            ModelSettings(
                base_url=base_url,
                medium_model="test-medium",
                low_model="test-low",
                max_concurrency=AT_ONCE,
                max_concurrency_per_tenant=AT_ONCE,
            )
        )
        stack.push_async_callback(engine.aclose)
        if delay_ms:
            settings = EmbeddingSettings(
                base_url=base_url,
                model="test-embedding",
                dimension=own.dimension,
                max_concurrency=AT_ONCE,
                max_concurrency_per_tenant=AT_ONCE,
            )
            remote = OpenAIEmbedder(settings)
            stack.push_async_callback(remote.aclose)
            embedder = Counted(remote)
        else:
            embedder = Counted(own)

        def behind(resources: Resources) -> Resources:
            return replace(resources, embedder=embedder)

        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pace = {"workflow_concurrency": AT_ONCE, "chunk_concurrency": AT_ONCE}
        product = await stack.enter_async_context(
            a_product(folder, engine, url, settings=pace, behind=behind)
        )
        tenant = await product.tenant(name, 10**12)
        target = product.running.gateway.target
        yield Bench(await stack.enter_async_context(Connection(target, tenant.key)), embedder)


def text_of(number: int, graphs: int) -> memory_ingest_pb2.AddEpisodeRequest:
    return memory_ingest_pb2.AddEpisodeRequest(
        graph_id=f"g{number % graphs}",
        request_id=f"text-{number}",
        kind=episode_pb2.EPISODE_KIND_CONVERSATION,
        text=f"Person{number} works at Company{number % 7}. Person{number} lives in City{number % 11}.",
    )


async def take_in(bench: Bench, first: int, texts: int, graphs: int) -> list[job_pb2.Job]:
    """Brings texts in batches, and waits until all are at their end."""
    connection = bench.connection
    requests = [text_of(first + number, graphs) for number in range(texts)]
    jobs: list[str] = []
    for at in range(0, texts, BATCH):
        asked = memory_ingest_pb2.BatchAddEpisodesRequest(requests=requests[at : at + BATCH])
        answer = await connection.call(connection.memory.BatchAddEpisodes, asked, 120)
        jobs += [one.response.job.job_id for one in answer.results]
    ended = [await wait_for(connection, job) for job in jobs]
    failed = [job for job in ended if job.state != job_pb2.JOB_STATE_SUCCEEDED]
    assert not failed, f"{len(failed)} jobs did not succeed, the first: {failed[0]}"
    return ended


def facts_of(jobs: Sequence[job_pb2.Job]) -> int:
    return sum(job.result.counts.claims_added for job in jobs)


def model_calls(jobs: Sequence[job_pb2.Job]) -> int:
    return sum(stage.calls for job in jobs for stage in job.receipt.stages)


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def pace(url: str, texts: int, graphs: int, delay_ms: int) -> float:
    """Times the ideal."""
    async with a_bench(url, "pace", delay_ms) as bench:
        await take_in(bench, 10**6, 1, 1)
        embedded = bench.embedder.calls
        began, processor = time.perf_counter(), processor_seconds()
        jobs = await take_in(bench, 0, texts, graphs)
        seconds, processor = time.perf_counter() - began, processor_seconds() - processor
        embedded = bench.embedder.calls - embedded
    calls, facts = model_calls(jobs) + embedded, facts_of(jobs)
    ideal = calls * delay_ms / 1000 / AT_ONCE
    print(
        f"pace: {texts} texts of {graphs} graphs, {facts} facts; {calls} calls of {delay_ms} ms, "
        f"{embedded} of them embeddings\n"
        f"  {seconds:.1f} s, the ideal is {ideal:.1f} s: {seconds / ideal:.2f} times\n"
        f"  {processor:.1f} s of processor here: {1000 * processor / texts:.0f} ms a text, "
        f"{1000 * processor / facts:.0f} ms a fact",
        flush=True,
    )
    return seconds / ideal


async def stages(url: str, texts: int) -> None:
    """One text at a time, with a model that answers at once."""
    told = Told()
    async with a_bench(url, "stages", 0) as bench:
        await take_in(bench, 10**6, 3, 1)
        structlog.configure(
            processors=[told],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
            cache_logger_on_first_use=False,
        )
        embedding = bench.embedder.seconds
        began, processor = time.perf_counter(), processor_seconds()
        jobs = []
        for number in range(texts):
            jobs += await take_in(bench, number, 1, 5)
        seconds, processor = time.perf_counter() - began, processor_seconds() - processor
        embedding = bench.embedder.seconds - embedding
    facts = facts_of(jobs)
    by_stage: Counter[str] = Counter()
    for job in jobs:
        for stage in job.receipt.stages:
            by_stage["resolver" if stage.stage.startswith("judge") else stage.stage] += stage.duration_millis
    model = sum(by_stage.values())
    answered = sum(told.milliseconds.values())
    print(f"stages: {texts} texts one by one, {facts} facts; milliseconds a fact, model calls apart")
    inside = {
        "Extract": model - by_stage["classify"] - by_stage["resolver"],
        "Classify": by_stage["classify"],
        "Resolve": by_stage["resolver"],
    }
    for rpc, milliseconds in told.milliseconds.most_common():
        own = milliseconds - inside.get(rpc, 0)
        print(f"  {rpc:16} {own / facts:7.1f}   {told.times[rpc] / texts:.1f} calls a text")
    rest = 1000 * seconds - answered
    print(f"  {'gateway':16} {rest / facts:7.1f}   accepting, steps, ledger, progress, watching")
    print(f"  {'embedding':16} {1000 * embedding / facts:7.1f}   in the stages above, by hash")
    beside = (1000 * seconds - model) / facts
    print(f"  {'all of it':16} {beside:7.1f}   beside {model / facts:.1f} in model calls")
    print(f"  {'processor':16} {1000 * processor / facts:7.1f}   of this process", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--delay-ms", type=int, default=800)
    parser.add_argument("--single", type=int, default=30, help="texts for the cost of stages")
    told = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    times = 0.0
    with a_database() as url:
        if told.texts:
            times = asyncio.run(pace(url, told.texts, told.graphs, told.delay_ms))
        if told.single:
            asyncio.run(stages(url, told.single))
    sys.exit(times > MOST)


if __name__ == "__main__":
    main()
