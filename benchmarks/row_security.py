"""What row-level security costs: the same stores, by the role of servers and by a superuser, whom it skips.

Two graphs of the same size lie beside each other. The roles take turns in random order in one run; printed
are times at the 30th percentile, which noise moves least, and their ratio. The last line is a transaction of
one query, with and without telling PostgreSQL whose rows it may touch: what both roles pay.

Run: python -m benchmarks.row_security [--statements N] [--rounds N]
"""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack

import psycopg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.credits.money import MicroCredits
from gateway.store.job_values import JobState, Outcome
from gateway.store.stores import Stores, open_stores
from palimpsest.v1.job_pb2 import JobResult
from services.domain.ids import EntityId, Revision, StatementId
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.graph.port import AsOf
from services.stores.graph.sql import SqlGraphStore
from services.stores.sql.engine import BEGINS, postgres_engine
from services.stores.sql.grants import grant
from services.stores.sql.isolation import binding
from services.stores.sql.migrations import upgrade
from tests.doubles.gateway import order
from tests.doubles.postgres_server import SERVER_ROLE, PostgresServer, as_server
from tests.doubles.schemas import SCHEMAS
from tests.machine import postgres_programs

MINE, THEIRS = (Scope(TenantId(tenant), GraphId("bench")) for tenant in ("acme", "globex"))
NOW = AsOf(Revision(10**9))

Deed = Callable[[], Awaitable[object]]


def fill(url: str, statements: int) -> None:
    """Statements about a tenth as many entities, one span each, in both graphs."""
    nodes = statements // 10
    entity = (
        "INSERT INTO graph_entities (scope, id, name, key, type, aliases, created_at) "
        "SELECT %(scope)s, 'e' || i, 'n' || i, 'k' || i, 'Person', '[]', 1 "
        "FROM generate_series(0, %(nodes)s) i"
    )
    statement = (
        "INSERT INTO graph_statements "
        "(scope, id, subject, predicate, object, fact, created_at, hull_from, hull_to) "
        "SELECT %(scope)s, 's' || i, 'e' || i %% %(nodes)s, 'e1', 'e' || i * 7 %% %(nodes)s, 'f' || i, i, 0, "
        "%(open)s FROM generate_series(0, %(count)s) i"
    )
    span = (
        "INSERT INTO graph_spans "
        "(scope, statement, id, valid_at, invalid_at, known_from, known_to, started_by, contested) "
        "SELECT %(scope)s, 's' || i, 'x' || i, 0, %(open)s, 1, %(open)s, 'c' || i, false "
        "FROM generate_series(0, %(count)s) i"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        for scope in (MINE, THEIRS):
            values = {"scope": scope.key, "nodes": nodes, "count": statements, "open": 2**63 - 1}
            for query in (entity, statement, span):
                connection.execute(query, values)
        connection.execute("ANALYZE")


def graph_deeds(store: SqlGraphStore, statements: int) -> Mapping[str, Deed]:
    def some() -> EntityId:
        return EntityId(f"e{random.randrange(statements // 10)}")

    def twenty() -> Sequence[StatementId]:
        return [StatementId(f"s{random.randrange(statements)}") for _ in range(20)]

    return {
        "one entity": lambda: store.entities(MINE, [some()]),
        "20 statements with spans": lambda: store.views(MINE, twenty(), NOW),
        "a slot": lambda: store.slot(MINE, some(), EntityId("e1")),
        "two hops": lambda: store.walk(MINE, [some()], NOW, 2, 50),
        "counts of a graph": lambda: store.counts(MINE, NOW.known_at),
    }


def job_deeds(stores: Stores) -> Mapping[str, Deed]:
    async def whole() -> None:
        request = order(MINE, f"r{random.randrange(10**12)}", ceiling=5)
        job = (await stores.jobs.accept(request)).job.id
        await stores.jobs.start(job)
        outcome = Outcome(JobState.SUCCEEDED, MicroCredits(0), JobResult(), revision=Revision(1))
        await stores.jobs.finish(job, outcome)

    return {"a job: accept, start, finish": whole}


async def transaction(engine: AsyncEngine, told: bool) -> None:
    async with engine.connect() as connection:
        await connection.execution_options(**{BEGINS: f"BEGIN; {binding(MINE)}" if told else "BEGIN"})
        async with connection.begin():
            await connection.execute(text("SELECT 1"))


async def compare(name: str, ways: Mapping[str, Deed], rounds: int) -> None:
    """Does each way `rounds` times, in turns, and prints a line: the first way is the measure."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for deed in ways.values():
        for _ in range(8):  # what the driver prepares it prepares now
            await deed()
    for _ in range(rounds):
        for way in random.sample(list(ways), len(ways)):
            begun = time.perf_counter()
            await ways[way]()
            times[way].append((time.perf_counter() - begun) * 1000)
    (first, base), (second, other) = (
        (way, statistics.quantiles(found, n=10)[2]) for way, found in times.items()
    )
    print(f"{name:30} {first} {base:8.2f} ms   {second} {other:8.2f} ms   x{other / base:.2f}", flush=True)


async def measure(url: str, statements: int, rounds: int) -> None:
    async with AsyncExitStack() as stack:
        deeds: dict[str, Mapping[str, Deed]] = {}
        for way, where in (("superuser", url), ("server", as_server(url))):
            store = SqlGraphStore(postgres_engine(where))
            stack.push_async_callback(store.close)
            stores = await open_stores(postgres_engine(where), postgres_engine(where))
            stack.push_async_callback(stores.close)
            deeds[way] = {**graph_deeds(store, statements), **job_deeds(stores)}
        await stores.tenants.create(MINE.tenant, "")
        async with stores.ledger.books(MINE.tenant) as books:
            await books.grant(MINE.tenant, "start", MicroCredits(10**9), "")
        for name in deeds["superuser"]:
            await compare(name, {way: its[name] for way, its in deeds.items()}, rounds)
        engine = postgres_engine(as_server(url))
        stack.push_async_callback(engine.dispose)
        ways: Mapping[str, Deed] = {
            "untold": lambda: transaction(engine, told=False),
            "told": lambda: transaction(engine, told=True),
        }
        await compare("a transaction of one query", ways, rounds * 4)


async def prepare(url: str) -> None:
    engine = postgres_engine(url)
    for schema in SCHEMAS.values():
        await upgrade(engine, schema)
        await grant(engine, schema, SERVER_ROLE)
    await engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    programs = postgres_programs()
    if programs is None:
        parser.error("PostgreSQL's server programs are not installed (see `make doctor`)")
    server = PostgresServer(programs)
    try:
        server.start()
        with server.database() as url:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE ROLE {SERVER_ROLE} LOGIN")
            asyncio.run(prepare(url))
            fill(url, options.statements)
            asyncio.run(measure(url, options.statements, options.rounds))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
