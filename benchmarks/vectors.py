"""Dense search as recall asks for it, on Milvus Lite, on the real Milvus server, and in arrays beside them.

One graph of 5,000 and one of 50,000 statements, 384 dimensions; each search is for the 40 nearest of it
whose hull holds at an instant, which about six rows in ten do. Arrays are exact: `found` is the share of
their nearest ten that a server found too. p50 and p95 are of one search at a time, `busy` is for each
of eight at once. Everything is on this machine; what is printed as a ratio was measured in one run.

Run: python -m benchmarks.vectors [--rows 5000 50000] [--searches 200]
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pymilvus import AsyncMilvusClient

from services.domain.instants import FOREVER, Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.vectors.lite import LiteServer
from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore
from services.stores.vectors.port import Collection, Hit, Vector, VectorFilter, VectorRow
from tests.doubles.milvus_server import MilvusServer

DIMENSION = 384
WIDTH = 40
AT_ONCE = 8
NOW = Instant(600)
HELD = VectorFilter(holds_at=NOW)
FACTS = Collection.STATEMENTS
INDEX_SECONDS = 300.0

Search = Callable[[Vector], Awaitable[Sequence[Hit]]]


@dataclass(frozen=True, slots=True)
class Data:
    """Rows about a few hundred subjects, and questions near some of them."""

    rows: Sequence[VectorRow]
    questions: Sequence[Vector]


@dataclass(frozen=True, slots=True)
class Measured:
    fill_seconds: float
    p50: float
    p95: float
    busy: float
    found: float


def make(count: int, searches: int) -> Data:
    random = np.random.default_rng(count)
    centres = random.standard_normal((300, DIMENSION)).astype(np.float32)
    near = centres[random.integers(0, len(centres), count + searches)]
    vectors = near + 0.8 * random.standard_normal(near.shape).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    starts = random.integers(0, 1_000, count)
    rows = [
        VectorRow(f"{number:08x}", vectors[number], Instant(int(start)), FOREVER, subject=f"s{number % 300}")
        for number, start in enumerate(starts)
    ]
    return Data(rows, list(vectors[count:]))


class Arrays:
    """Exact search in memory, as a scope in use has it."""

    def __init__(self, rows: Sequence[VectorRow]) -> None:
        self._ids = [row.id for row in rows]
        self._vectors = np.stack([row.vector for row in rows])
        self._starts = np.array([row.valid_at for row in rows])

    async def search(self, question: Vector) -> Sequence[Hit]:
        cosines = np.where(self._starts <= NOW, self._vectors @ question, -2.0)
        nearest = np.argpartition(-cosines, WIDTH)[:WIDTH]
        best = nearest[np.argsort(-cosines[nearest])]
        return [Hit(self._ids[at], float(cosines[at])) for at in best]


async def timed(
    search: Search, questions: Sequence[Vector]
) -> tuple[list[float], float, list[Sequence[Hit]]]:
    """Milliseconds of each search alone, of one of many at once, and what was found."""
    for question in questions[:10]:
        await search(question)
    alone, answers = [], []
    for question in questions:
        started = time.perf_counter()
        answers.append(await search(question))
        alone.append(1000 * (time.perf_counter() - started))
    started = time.perf_counter()
    for start in range(0, len(questions), AT_ONCE):
        await asyncio.gather(*map(search, questions[start : start + AT_ONCE]))
    return alone, 1000 * (time.perf_counter() - started) / len(questions), answers


def told(fill: float, times: list[float], busy: float, found: float) -> Measured:
    p50, p95 = np.percentile(times, [50, 95])
    return Measured(fill, float(p50), float(p95), busy, found)


def share(answers: Sequence[Sequence[Hit]], exact: Sequence[Sequence[Hit]]) -> float:
    both = [
        len({hit.id for hit in one[:10]} & {hit.id for hit in other[:10]}) / 10
        for one, other in zip(answers, exact, strict=True)
    ]
    return float(np.mean(both))


async def on_server(uri: str, data: Data, exact: Sequence[Sequence[Hit]], flush: bool) -> Measured:
    """Fills a graph of its own, has the server index it, and searches."""
    scope = Scope(TenantId("bench"), GraphId(f"rows-{len(data.rows)}"))
    prefix = f"bench{len(data.rows)}"
    store = MilvusVectorStore(MilvusOptions(uri, "bench", DIMENSION, prefix, timeout_seconds=60))
    try:
        started = time.perf_counter()
        for start in range(0, len(data.rows), 500):
            await store.upsert(scope, FACTS, data.rows[start : start + 500])
        await store.flush()
        filled = time.perf_counter() - started
        if flush:
            await indexed(uri, store.models.name(FACTS))

        async def search(question: Vector) -> Sequence[Hit]:
            return (await store.search(scope, FACTS, [question], WIDTH, HELD))[0]

        alone, busy, answers = await timed(search, data.questions)
        await store.erase(scope)
        return told(filled, alone, busy, share(answers, exact))
    finally:
        await store.close()


async def indexed(uri: str, name: str) -> None:
    """Has a real server seal its rows, and waits until they are indexed."""
    client = AsyncMilvusClient(uri, dedicated=True)
    try:
        await client.flush(name, timeout=INDEX_SECONDS)
        async with asyncio.timeout(INDEX_SECONDS):
            while (await client.describe_index(name, "vector"))["pending_index_rows"]:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.5)
    finally:
        await client.close()


@contextmanager
def servers(folder: Path) -> Iterator[dict[str, str]]:
    real = MilvusServer.start(folder / "real")
    try:
        with LiteServer.start(folder / "lite", folder / "lite.log") as lite:
            yield {"Milvus Lite": lite.uri, "Milvus 2.3.5": real.uri}
    finally:
        real.kill()


async def measure(uris: dict[str, str], counts: Sequence[int], searches: int) -> None:
    heads = f"{'fill s':>8}{'p50 ms':>9}{'p95 ms':>9}{'busy ms':>9}{'found':>7}{'p50 ×':>8}"
    print(f"{'rows':>7}  {'store':13}{heads}")
    for count in counts:
        data = make(count, searches)
        alone, busy, exact = await timed(Arrays(data.rows).search, data.questions)
        measured = {"arrays": told(0.0, alone, busy, 1.0)}
        for name, uri in uris.items():
            measured[name] = await on_server(uri, data, exact, flush=name != "Milvus Lite")
        for name, one in measured.items():
            ratio = one.p50 / measured["Milvus 2.3.5"].p50
            print(
                f"{count:7,}  {name:13}{one.fill_seconds:8.1f}{one.p50:9.2f}{one.p95:9.2f}{one.busy:9.2f}"
                f"{one.found:7.3f}{ratio:8.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--searches", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder)) as uris:
        asyncio.run(measure(uris, given.rows, given.searches))


if __name__ == "__main__":
    main()
