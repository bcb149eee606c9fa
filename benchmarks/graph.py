"""The graph store as recall asks it, in graphs of growing size, and a small graph beside a large one.

One graph of 5,000, one of 50,000, one of 500,000 statements, and one of 100 that shares the largest one's
store. A statement has one claim and one span; four spans in ten have ended. Each question is asked of now and
of a past day: a walk of two hops with 50 a level, the statements of one subject, entities by key. p50 and p95
are of one question at a time; ratios are to the smallest graph of the same run.

Run: python -m benchmarks.graph [--sizes 5000 50000 500000] [--questions 100] [--nebula HOST:PORT]
     [--postgres URL]      (otherwise SQLite, in a folder of its own)
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId, Revision
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.graph.nebula.bootstrap import bootstrap
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.graph.port import AsOf, Commit, GraphStore, StatementFilter
from services.stores.graph.sql import SqlGraphStore
from services.stores.paging import Page
from services.stores.sql.engine import engine_for
from tests.builders import Maker, on, together

SMALL = 100
BATCH = 1_000
"""Facts of one commit."""
FACTS_A_SUBJECT = 8
PREDICATES = ("knows", "works_at", "lives_in", "uses", "maintains", "reports_to")
YEARS = range(2015, 2026)
NOW, PAST = on("2026-01-01"), on("2020-06-01")
HOPS, A_LEVEL = 2, 50
Ask = Callable[[EntityId, str, AsOf], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that was filled: where it is, how long that took, and whom to ask about."""

    scope: Scope
    size: int
    seconds: float
    last: Revision
    subjects: Sequence[Entity]


def commits(make: Maker, size: int, chance: random.Random) -> Iterator[Commit]:
    """All of a graph, BATCH facts a commit."""
    people = max(size // FACTS_A_SUBJECT, 2)
    made = 0
    while made < size:
        revision = 1 + made // BATCH
        facts = []
        for number in range(made, min(made + BATCH, size)):
            subject, other = f"p{number % people}", f"p{chance.randrange(people)}"
            year = chance.choice(YEARS)
            ended = on(f"{year + 1}-01-01") if chance.random() < 0.4 else None
            predicate = f"{chance.choice(PREDICATES)}_{number // people}"
            start = on(f"{year}-{chance.randrange(1, 13):02}-01")
            facts.append(make.fact(subject, predicate, other, start, ended, revision=revision))
        yield together(facts)
        made += BATCH


async def fill(store: GraphStore, name: str, size: int) -> Graph:
    scope = Scope(TenantId("bench"), GraphId(name))
    make, chance = Maker(scope), random.Random(size)
    began, last = time.perf_counter(), Revision(0)
    for commit in commits(make, size, chance):
        await store.apply(scope, commit)
        last = commit.revision
    people = max(size // FACTS_A_SUBJECT, 2)
    subjects = [make.entity(f"p{chance.randrange(people)}", EntityType.CONCEPT) for _ in range(400)]
    return Graph(scope, size, time.perf_counter() - began, last, subjects)


def questions(store: GraphStore, scope: Scope) -> Mapping[str, Ask]:
    async def walk(seed: EntityId, _: str, at: AsOf) -> object:
        return await store.walk(scope, [seed], at, HOPS, A_LEVEL)

    async def subject(seed: EntityId, _: str, at: AsOf) -> object:
        where = StatementFilter(subjects=[seed], include_ended=True)
        return await store.list_statements(scope, where, at, Page(50))

    async def keys(_: EntityId, key: str, at: AsOf) -> object:
        return await store.find_entities(scope, [key], at.known_at)

    return {"walk": walk, "of a subject": subject, "by key": keys}


async def ask(ask_one: Ask, graph: Graph, number: int, valid_at: Instant) -> Sequence[float]:
    """Milliseconds of each question; the first, which fills caches, is left out."""
    at, taken = AsOf(graph.last, valid_at), []
    for index in range(number + 1):
        one = graph.subjects[index % len(graph.subjects)]
        began = time.perf_counter()
        await ask_one(one.id, one.key, at)
        taken.append((time.perf_counter() - began) * 1000)
    return taken[1:]


async def run(store: GraphStore, sizes: Sequence[int], number: int) -> None:
    base: dict[tuple[str, str], float] = {}
    graphs = [await fill(store, f"g{size}", size) for size in sizes]
    graphs.append(await fill(store, "small", SMALL))
    for graph in graphs:
        beside = " (beside all of them)" if graph.size == SMALL else ""
        print(f"{graph.size:,} statements{beside}: {graph.size / graph.seconds:,.0f} a second written")
        for name, ask_one in questions(store, graph.scope).items():
            for when, valid_at in (("now", NOW), ("past", PAST)):
                taken = await ask(ask_one, graph, number, valid_at)
                p50, p95 = statistics.median(taken), statistics.quantiles(taken, n=20)[-1]
                first = base.setdefault((name, when), p50)
                print(f"  {name:13} {when:5} p50 {p50:7.1f} ms  p95 {p95:7.1f} ms  x {p50 / first:.2f}")


async def opened(arguments: argparse.Namespace, folder: Path) -> GraphStore:
    if arguments.nebula:
        settings = NebulaSettings(addresses=arguments.nebula, space=f"bench_{uuid4().hex[:8]}", partitions=4)
        await bootstrap(settings)
        return await NebulaGraphStore.open(settings)
    return await SqlGraphStore.open(engine_for(arguments.postgres or f"sqlite:///{folder / 'graph.db'}"))


async def main_of(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await opened(arguments, Path(folder))
        try:
            await run(store, arguments.sizes, arguments.questions)
        finally:
            await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 50_000, 500_000])
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--nebula", default="", help="host:port of a graphd")
    parser.add_argument("--postgres", default="", help="URL of an empty database")
    asyncio.run(main_of(parser.parse_args()))


if __name__ == "__main__":
    main()
