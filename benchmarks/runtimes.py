"""Recall and ingest where the services run: in one process, on Ray behind Serve's proxy, and behind HAProxy.

Each is `palimpsest up` in processes of its own, asked by the public API from here. Embeddings come from a
model server, at once; the engine is the offline one. Every figure has its ratio to in process beside it.

Run: python -m benchmarks.runtimes [--texts N] [--facts N] [--questions N] [--rounds N]
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import grpc.aio

from benchmarks.product import (
    DIMENSION,
    Client,
    ask,
    at_once,
    fill,
    ingest,
    ingest_warm_up,
    model_server,
    one_by_one,
)
from tests.e2e.up_process import UpProcess

RUNTIMES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "in process": ("inprocess", {}),
    "Ray, its proxy": ("ray", {"PALIMPSEST_RAY_INGRESS": "proxy"}),
    "Ray, HAProxy": ("ray", {"PALIMPSEST_RAY_INGRESS": "haproxy"}),
}
CREDITS_MICROS = 10**12
CALLERS = 8
WARM_SECONDS = 20
"""What a graph of some thousands of facts, asked for the first time, needs until its vectors are held too."""

Figures = dict[str, float]
"""Milliseconds or amounts a second, by what was measured."""


async def measured(up: UpProcess, texts: int, facts: int, questions: int) -> Figures:
    tenant = up.tenant(CREDITS_MICROS)
    async with grpc.aio.insecure_channel(up.target) as channel:
        client = Client(channel, tenant.key)
        await ingest_warm_up(client)
        seconds, _ = await ingest(client, texts)
        fill_seconds = await fill(client, facts)
        await one_by_one(lambda number: ask(client, number, False), questions)
        await asyncio.sleep(WARM_SECONDS)
        await one_by_one(lambda number: ask(client, number, False), questions)
        alone, _ = await one_by_one(lambda number: ask(client, number, False), questions)
        together, together_seconds = await at_once(
            lambda number: ask(client, number, False), questions, CALLERS
        )
    return {
        "texts a second": texts / seconds,
        "facts asserted a second": facts / fill_seconds,
        "recall p50 ms": statistics.median(alone),
        "recall p95 ms": statistics.quantiles(alone, n=20)[-1],
        f"recalls a second, {CALLERS} at once": questions / together_seconds,
        f"recall p95 ms, {CALLERS} at once": statistics.quantiles(together, n=20)[-1],
    }


def run(runtime: str, settings: Mapping[str, str], embeddings: str, arguments: argparse.Namespace) -> Figures:
    base = {
        "PALIMPSEST_EMBEDDER": "openai",
        "PALIMPSEST_EMBEDDING__BASE_URL": embeddings,
        "PALIMPSEST_EMBEDDING__MODEL": "test-embedding",
        "PALIMPSEST_EMBEDDING__DIMENSION": str(DIMENSION),
        "PALIMPSEST_TENANT_REQUESTS_PER_SECOND": "100000",
    }
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        with UpProcess(Path(folder) / "data", base | dict(settings), runtime=runtime) as up:
            seconds = time.perf_counter() - started
            memory = sum(process.memory_full_info().pss for process in up.family())
            found = asyncio.run(measured(up, arguments.texts, arguments.facts, arguments.questions))
    return {"seconds to start": seconds, "megabytes": memory / 2**20} | found


def show(found: Mapping[str, Sequence[Figures]]) -> None:
    names = list(found)
    print(f"{'':34}" + "".join(f"{name:>24}" for name in names))
    for what in found[names[0]][0]:
        values = [statistics.median(one[what] for one in found[name]) for name in names]
        cells = [f"{value:.1f} (x {value / values[0]:.2f})" for value in values]
        print(f"{what:34}" + "".join(f"{cell:>24}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--facts", type=int, default=2_000)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    found: dict[str, list[Figures]] = {name: [] for name in RUNTIMES}
    with model_server(0) as embeddings:
        for _ in range(arguments.rounds):
            for name, (runtime, settings) in RUNTIMES.items():
                found[name].append(run(runtime, settings, embeddings, arguments))
    show(found)


if __name__ == "__main__":
    main()
