"""Recall over one graph: milliseconds and CPU of a question, warm and cold, as of now and of past dates.

By the public API of the whole product in one process, and beside it by the recall service alone, once from
memory and once from the stores (what a question costs without hot scopes), over the same graph in the same
run: ratios are to the latter. Every question is asked once before it is measured, so that embedding it, which
is told apart, is done. The CPU is of this process: client, gateway and services; not of Milvus Lite's.
First calls of a cold graph are told apart too, without CPU: by the service alone, where it reads the stores,
and where it reads the snapshot that was kept of them (of 1,000 facts or more).

Run: python -m benchmarks.recall_latency [--facts 5000 50000] [--questions 200]
"""

import argparse
import asyncio
import logging
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc.aio
import structlog

from benchmarks.filled import BEGAN, DAY, FACTS_A_PERSON, fill
from benchmarks.product import DIMENSION, Client, model_server
from gateway.convert.times import timestamp
from gateway.keys import KeyScope
from gateway.main import open_gateway
from gateway.settings import GatewaySettings
from palimpsest.internal.v1 import recall_pb2 as internal
from palimpsest.v1 import graph_pb2, recall_pb2, recall_subgraph_pb2
from palimpsest.v1.graph_pb2_grpc import GraphServiceStub
from services.domain.instants import Instant
from services.domain.predicates import default_vocabulary
from services.domain.scope import GraphId, Scope, TenantId
from services.llm.settings import EmbeddingSettings
from services.recall.parts import Options, Parts
from services.recall.service import Recall
from services.runtime.assertion import Signer
from services.runtime.heap import settle
from services.runtime.inprocess import serve_inprocess
from services.runtime.names import ServiceName
from services.runtime.resources import Resources, open_resources
from services.runtime.settings import ServiceSettings

TENANT = TenantId("bench")
PAST = Instant(BEGAN + 500 * DAY)
Ask = Callable[[int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of many questions, one at a time unless told: milliseconds each, CPU milliseconds each, a second."""

    p50: float
    p95: float
    cpu: float
    rate: float


async def measured(ask: Ask, times: int, at_once: int = 1) -> Figures:
    took: list[float] = []
    numbers = iter(range(times))
    began, cpu = time.perf_counter(), time.process_time()

    async def caller() -> None:
        for number in numbers:
            start = time.perf_counter()
            await ask(number)
            took.append((time.perf_counter() - start) * 1000)

    await asyncio.gather(*(caller() for _ in range(at_once)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return Figures(
        statistics.median(took), statistics.quantiles(took, n=20)[-1], cpu * 1000 / times, times / seconds
    )


def show(name: str, figures: Figures, to: Figures | None = None, of: str = "") -> None:
    ratio = f"   p50 × {figures.p50 / to.p50:.2f}, CPU × {figures.cpu / to.cpu:.2f} of {of}" if to else ""
    print(
        f"  {name:44} p50 {figures.p50:7.1f} ms   p95 {figures.p95:7.1f} ms   CPU {figures.cpu:6.1f} ms   "
        f"{figures.rate:6.1f}/s{ratio}",
        flush=True,
    )


class Bench:
    """One product over one graph, and the recall service twice beside it."""

    def __init__(
        self, resources: Resources, client: Client, channel: grpc.aio.Channel, scope: Scope, facts: int
    ):
        memory = resources.memory
        parts = Parts(
            graph=resources.graph,
            text=memory.text,
            voice=memory.voice,
            readings=memory.readings,
            archive=memory.archive,
            revisions=memory.revisions,
            decisions=memory.decisions,
            snapshots=memory.snapshots,
            summaries=memory.summaries,
            vectors=resources.vectors,
            embedder=resources.embedder,
            vocabulary=default_vocabulary(),
        )
        self._resources = resources
        self._client = client
        self._channel = channel
        self._scope = scope
        self._people = max(1, facts // FACTS_A_PERSON)
        self.hot = Recall(parts)
        self.stores = Recall(replace(parts, options=Options(hot=False)))

    def query(self, number: int) -> str:
        return f"Which tool does Person {number % self._people} use, and where do they live?"

    def public(self, **fields: Any) -> Ask:
        async def ask(number: int) -> object:
            request = recall_pb2.RecallRequest(
                graph_ids=[self._scope.graph],
                query=self.query(number),
                max_facts=10,
                token_budget=2_000,
                **fields,
            )
            answer = await self._client(self._client.recall.Recall, request)
            assert answer.facts or fields, "a question about a known person found nothing"
            return answer

        return ask

    def subgraph(self) -> Ask:
        async def ask(number: int) -> object:
            request = recall_subgraph_pb2.GetSubgraphRequest(graph_id=self._scope.graph, depth=2)
            request.seeds.add(name=f"Person {number % self._people}")
            return await self._client(self._client.recall.GetSubgraph, request)

        return ask

    def service(self, recall: Recall, **fields: Any) -> Ask:
        async def ask(number: int) -> object:
            return await recall.recall(
                self._scope,
                internal.RecallRequest(
                    query=self.query(number), now=BEGAN + 2_000 * DAY, max_hops=2, max_facts=10,
                    max_passages=10, token_budget=2_000, include_facts=True, include_passages=True,
                    include_voice=True,
                    include_ended=True, **fields,
                ),
            )  # fmt: skip

        return ask

    def walk(self, recall: Recall) -> Ask:
        async def ask(number: int) -> object:
            request = internal.WalkRequest(
                seeds=[f"Person {number % self._people}"], max_hops=2, per_level=40, include_ended=True
            )
            return await recall.walk(self._scope, request)

        return ask

    async def embedding(self, times: int) -> Figures:
        async def ask(number: int) -> object:
            return await self._resources.embedder.queries([self.query(number)])

        return await measured(ask, times)

    async def cold(self, times: int, *, kept: bool) -> Sequence[float]:
        """Milliseconds of first calls, each by a service that holds nothing yet; if `kept`, from the snapshot
        that an earlier call left.
        """
        found = []
        for _ in range(times):
            if not kept:
                await self._resources.memory.snapshots.drop(self._scope)
            self.hot.forget(self._scope)
            began = time.perf_counter()
            await self.service(self.hot)(0)
            found.append((time.perf_counter() - began) * 1000)
            # Vectors are loaded and snapshots kept behind an answer: that is not to delay the next one.
            await self.hot.settled()
        return found

    async def run(self, questions: int) -> Figures:
        embedding = await self.embedding(min(questions, 50))
        print(f"  embedding a question, apart: p50 {embedding.p50:.1f} ms, CPU {embedding.cpu:.1f} ms")
        stores, kept = await self.cold(3, kept=False), await self.cold(3, kept=True)
        ratio = f"× {min(kept) / min(stores):.2f} of the stores"
        for name, cold, beside in (("the stores", stores, ""), ("its snapshot", kept, f", {ratio}")):
            took = f"{min(cold):.0f} to {max(cold):.0f} ms"
            print(f"  first call of a cold graph, from {name}: {took}{beside}", flush=True)
        for ask in (self.public(), self.service(self.hot), self.service(self.stores)):
            await measured(ask, questions)
        await asyncio.sleep(1)
        await measured(self.public(), questions)
        now = await measured(self.public(), questions)
        show("public API, now", now)
        show(
            "public API, as of a past date",
            await measured(self.public(as_of=timestamp(PAST)), questions),
            now,
            "now",
        )
        show("public API, 8 callers at once", await measured(self.public(), questions, 8), now, "one")
        show("public API, GetSubgraph of two hops", await measured(self.subgraph(), questions))
        few = max(20, questions // 4)
        for name, fields in (("now", {}), ("as of a past date", {"as_of": PAST})):
            old = await measured(self.service(self.stores, **fields), few)
            show(f"recall service, {name}, from the stores", old)
            hot = await measured(self.service(self.hot, **fields), questions)
            show(f"recall service, {name}, from memory", hot, old, "the stores")
        old = await measured(self.walk(self.stores), few)
        show("walk of two hops, both ways, from the stores", old)
        show(
            "walk of two hops, both ways, from memory",
            await measured(self.walk(self.hot), questions),
            old,
            "the stores",
        )
        return now


async def measure(facts: int, questions: int) -> Figures:
    """All figures of a graph of so many facts, printed; answers those of the public API, now."""
    async with AsyncExitStack() as stack:
        return await (await opened_bench(facts, stack)).run(questions)


async def measure_public(facts: int, questions: int) -> Mapping[str, Figures]:
    """Figures of the public API alone, in memory, `now` and `as of` a past date."""
    async with AsyncExitStack() as stack:
        bench = await opened_bench(facts, stack)
        found = {}
        for name, ask in (("now", bench.public()), ("as of", bench.public(as_of=timestamp(PAST)))):
            await measured(ask, questions)
            await asyncio.sleep(10)  # vectors come behind the first answers
            await measured(ask, questions)
            found[name] = await measured(ask, questions)
        return found


async def opened_bench(facts: int, stack: AsyncExitStack) -> Bench:
    """A product over a graph of so many facts; `stack` stops it."""
    folder = Path(stack.enter_context(TemporaryDirectory()))
    embeddings = stack.enter_context(model_server(0))
    embedding = EmbeddingSettings(base_url=embeddings, model="test-embedding", dimension=DIMENSION)
    services = ServiceSettings(data_dir=folder, embedder="openai", embedding=embedding)
    gateway = GatewaySettings(
        data_dir=folder, gateway_port=0, tenant_requests_per_second=100_000, admission_wait_seconds=60
    )
    resources = await open_resources(services, stack)
    signer = Signer(b"for a measurement only", resources.now)
    running = await serve_inprocess(resources, signer)
    stack.push_async_callback(running.stop)
    targets = dict.fromkeys(ServiceName, running.target)
    opened = await open_gateway(gateway, targets, signer, stack, resources.now, "offline")
    await opened.stores.tenants.create(TENANT, "")
    _, key = await opened.stores.keys.create(TENANT, "bench", [KeyScope.ERASE])
    channel = grpc.aio.insecure_channel(opened.target)
    stack.push_async_callback(channel.close)
    client = Client(channel, key)
    await client(GraphServiceStub(channel).CreateGraph, graph_pb2.CreateGraphRequest(graph_id="big"))
    scope = Scope(TENANT, GraphId("big"))
    began = time.perf_counter()
    await fill(resources, scope, facts)
    print(f"{facts} facts, filled in {time.perf_counter() - began:.0f} s", flush=True)
    settle()  # as every server does when it has started
    return Bench(resources, client, channel, scope, facts)


def quiet() -> None:
    """Nothing is logged but errors: writing lines is no part of what is measured."""
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--facts", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--questions", type=int, default=200)
    arguments = parser.parse_args()
    quiet()
    first: Figures | None = None
    for facts in arguments.facts:
        now = asyncio.run(measure(facts, arguments.questions))
        if first is not None:
            show(f"public API, now, {facts} facts", now, first, f"{arguments.facts[0]}")
        first = first or now


if __name__ == "__main__":
    main()
