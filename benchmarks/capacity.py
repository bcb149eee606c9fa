"""How many workers, replicas and stores a load needs: a queueing model, with one assumption measured.

Each assumption is a field of `Load` or `Cost`, with where it comes from; the model is Little's law for what
is in flight, utilisation for what computes, and a simulation of a graph's queue: resolution is serial there.

Run: python -m benchmarks.capacity [--tenants N] [--episodes N] [--model-ms N] [--measure]
`--measure` ingests texts with a model server that waits, and compares the throughput with what is predicted.
"""

import argparse
import asyncio
import heapq
import math
import random
import statistics
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from benchmarks.product import ingest, ingest_warm_up, model_server, open_client
from gateway.settings import GatewaySettings
from palimpsest.v1 import job_pb2
from services.runtime.names import ServiceName
from services.runtime.ray_settings import ServiceScale


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in."""

    tenants: int = 1_000
    """Each with one graph that is written to; arrivals are Poisson, spread evenly."""
    episodes_a_second: float = 100
    recalls_a_second: float = 300
    """Three questions an episode: a guess, to be replaced by your own."""
    model_seconds: float = 0.8
    """Of one call, whatever its length."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one episode of a few sentences takes (benchmarks/model_calls.py and product.py, on two cores)."""

    calls_in_a_row: int = 4
    """Normalise; extract twice side by side; reflect; classify. Then one to resolve."""
    resolving_calls: int = 1
    calls: int = 6
    worker_cpu: float = 0.060
    """Gateway and worker: accept, steps, events, settlement."""
    services_cpu: float = 0.090
    """The five services, embeddings elsewhere."""
    recall_cpu: float = 0.030
    transactions: int = 70
    """Of PostgreSQL, an episode: ledger, jobs, workflows, text and revisions."""
    graph_writes: int = 25
    facts: float = 3
    vectors_a_fact: float = 1.7
    """With its passages and entities."""


UTILISATION = 0.6
"""Aimed at for all that computes or queues: at 0.6 waiting is short, and one of three may be lost."""
TRANSACTIONS_A_CORE = 1_500
"""Short transactions that one core of PostgreSQL does a second, with synchronous commit on good disks."""
BYTES_A_VECTOR = 384 * 4 + 400
BYTES_A_FACT = 2_500
"""Statement, records, spans and edges in NebulaGraph, one replica."""


@dataclass(frozen=True, slots=True)
class Needed:
    """The answer."""

    model_calls_in_flight: float
    workers: int
    gateways: int
    replicas: dict[str, int]
    cores_of_services: float
    cores_of_postgres: int
    millions_of_facts_a_day: float
    gigabytes_of_graph_a_day: float
    gigabytes_of_vectors_a_day: float
    graph_wait_p95: float
    """Seconds that an episode waits for the one before it in its graph."""


def needed(load: Load, cost: Cost) -> Needed:
    """By Little's law: what is in flight is what arrives times how long it stays."""
    rate = load.episodes_a_second
    job_seconds = (cost.calls_in_a_row + cost.resolving_calls) * load.model_seconds + 0.3
    per_worker = GatewaySettings().workflow_concurrency * UTILISATION
    by_time = rate * job_seconds / per_worker
    by_cpu = rate * cost.worker_cpu / UTILISATION
    waiting = rate * cost.calls * load.model_seconds
    shares = {ServiceName.EXTRACTOR: 4 / 6, ServiceName.CLASSIFIER: 1 / 6, ServiceName.RESOLVER: 1 / 6}
    replicas = {
        name.value: math.ceil(waiting * share / ServiceScale.of(name).target_ongoing_requests)
        for name, share in shares.items()
    }
    replicas["preprocessor"] = math.ceil(rate * 0.01 / UTILISATION)
    replicas["recall"] = max(2, math.ceil(load.recalls_a_second * cost.recall_cpu / UTILISATION))
    facts = rate * cost.facts * 86_400
    waits = simulated_waits(load, cost)
    return Needed(
        model_calls_in_flight=waiting,
        workers=math.ceil(max(by_time, by_cpu)),
        gateways=max(3, math.ceil((rate * 0.02 + load.recalls_a_second * 0.004) / UTILISATION)),
        replicas=replicas,
        cores_of_services=(rate * cost.services_cpu + load.recalls_a_second * cost.recall_cpu) / UTILISATION,
        cores_of_postgres=math.ceil(rate * cost.transactions / TRANSACTIONS_A_CORE / UTILISATION),
        millions_of_facts_a_day=facts / 1e6,
        gigabytes_of_graph_a_day=facts * BYTES_A_FACT * 3 / 1e9,
        gigabytes_of_vectors_a_day=facts * cost.vectors_a_fact * BYTES_A_VECTOR / 1e9,
        graph_wait_p95=waits[int(len(waits) * 0.95)],
    )


def simulated_waits(load: Load, cost: Cost, seconds: float = 2_000, graphs: int = 40) -> Sequence[float]:
    """How long episodes of a few graphs wait for resolution, which is one at a time in each, sorted.

    Understanding takes long and overlaps; an episode may be ready before one that came earlier.
    """
    drawn = random.Random(7)
    rate = load.episodes_a_second / load.tenants * graphs
    ready: list[tuple[float, int]] = []
    now = 0.0
    while now < seconds:
        now += drawn.expovariate(rate)
        understood = sum(drawn.expovariate(1 / load.model_seconds) for _ in range(cost.calls_in_a_row))
        heapq.heappush(ready, (now + understood, drawn.randrange(graphs)))
    free = [0.0] * graphs
    waits = []
    while ready:
        at, graph = heapq.heappop(ready)
        begins = max(at, free[graph])
        free[graph] = begins + cost.resolving_calls * load.model_seconds + 0.1
        waits.append(begins - at)
    return sorted(waits)


def show(load: Load, cost: Cost, found: Needed) -> None:
    print(f"assumed: {load}")
    print(f"         {cost}")
    print(f"         utilisation {UTILISATION}, {TRANSACTIONS_A_CORE} transactions a second and core")
    print(f"model calls in flight        {found.model_calls_in_flight:8.0f}")
    print(f"workers of 16 jobs           {found.workers:8d}")
    print(f"gateways                     {found.gateways:8d}")
    for name, count in found.replicas.items():
        print(f"replicas of {name:16} {count:8d}")
    print(f"cores of all services        {found.cores_of_services:8.0f}")
    print(f"cores of PostgreSQL          {found.cores_of_postgres:8d}")
    print(f"facts a day                  {found.millions_of_facts_a_day:8.1f} million")
    print(f"NebulaGraph, three replicas  {found.gigabytes_of_graph_a_day:8.0f} GB a day")
    print(f"Milvus                       {found.gigabytes_of_vectors_a_day:8.0f} GB a day")
    print(f"wait within a graph, p95     {found.graph_wait_p95:8.2f} s")


async def measure(texts: int, delay_ms: int) -> None:
    """The assumption that throughput is places ÷ (calls × delay), until processors are the limit."""
    async with AsyncExitStack() as stack:
        embeddings = stack.enter_context(model_server(0))
        client = await open_client(stack, stack.enter_context(model_server(delay_ms)), embeddings)
        await ingest_warm_up(client)
        seconds, receipt = await ingest(client, texts)
    calls, places = _calls(receipt), GatewaySettings().chunk_concurrency
    predicted = places / (calls * delay_ms / 1000)
    print(
        f"measured: {texts / seconds:.2f} texts a second, predicted {predicted:.2f} "
        f"({calls} calls of {delay_ms} ms, {places} at once): ratio {texts / seconds / predicted:.2f}"
    )


def _calls(receipt: job_pb2.JobReceipt) -> int:
    return sum(stage.calls for stage in receipt.stages)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tenants", type=int, default=Load().tenants)
    parser.add_argument("--episodes", type=float, default=Load().episodes_a_second)
    parser.add_argument("--model-ms", type=float, default=1_000 * Load().model_seconds)
    parser.add_argument("--measure", action="store_true")
    asked = parser.parse_args()
    load = Load(asked.tenants, asked.episodes, 3 * asked.episodes, asked.model_ms / 1_000)
    show(load, Cost(), needed(load, Cost()))
    waits = simulated_waits(load, Cost())
    print(f"wait within a graph, mean    {statistics.mean(waits):8.2f} s, of {len(waits)} episodes")
    if asked.measure:
        asyncio.run(measure(40, int(asked.model_ms)))


if __name__ == "__main__":
    main()
