"""Hold and settle on PostgreSQL: pairs a second from several clients on one hot tenant, and nothing lost.

Starts a PostgreSQL of its own on loopback, with tables that another role made and a role that row-level
security binds, as in production. Each pair holds credits in one transaction, then spends and settles in
another, as the acceptance and the end of a job do; all clients want the same account. Afterwards the audit
must find nothing, and the balance must be what was granted less what was charged. One client alone, before,
tells what waiting for each other costs: where it is no slower than all together, they work in a row.

Other work on the machine moves pairs a second, but hardly the CPU of a pair, here and in PostgreSQL, nor how
many clients wait for a row that another one has.

Run: python -m benchmarks.ledger [--pairs N] [--clients N] [--durable]
"""

import argparse
import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil
import psycopg

from gateway.credits.audit import audit
from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.usage import Period
from gateway.credits.values import HoldId
from gateway.store.clock import DatabaseClock
from gateway.store.stores import open_stores
from services.domain.scope import TenantId
from services.stores.sql.database import Database
from services.stores.sql.engine import postgres_engine
from services.stores.sql.grants import grant
from services.stores.sql.migrations import upgrade
from tests.doubles.postgres_server import SERVER_ROLE, PostgresServer, as_server
from tests.doubles.schemas import SCHEMAS
from tests.machine import postgres_programs

TENANT = TenantId("hot")
CEILING, CHARGE = MicroCredits(100), MicroCredits(60)
TTL_SECONDS = 600.0
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


async def client(url: str, number: int, pairs: int) -> None:
    """A process's share of the work, on connections of its own."""
    database = Database(postgres_engine(url), "ledger")
    ledger = Ledger(database, DatabaseClock())
    try:
        for at in range(pairs):
            hold = HoldId(f"{number}-{at}")
            async with ledger.books(TENANT) as books:
                await books.hold(TENANT, hold, CEILING, TTL_SECONDS, price_version="v1")
            async with ledger.books(TENANT) as books:
                await books.spend(TENANT, hold, "step", CHARGE)
                await books.settle(TENANT, hold, CHARGE)
    finally:
        await database.close()


async def prepare(url: str) -> None:
    """Tables as `palimpsest-admin migrate` makes them, and the servers' role, which owns none of them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {SERVER_ROLE} LOGIN")
    engine = postgres_engine(url)
    for schema in (SCHEMAS["ledger"], SCHEMAS["jobs"]):
        await upgrade(engine, schema)
        await grant(engine, schema, SERVER_ROLE)
    await engine.dispose()


async def run(url: str, first: int, pairs: int, clients: int) -> float:
    """Pairs a second. Clients are numbered from `first`."""
    shares = [pairs // clients + (number < pairs % clients) for number in range(clients)]
    started = time.perf_counter()
    await asyncio.gather(*(client(url, first + number, share) for number, share in enumerate(shares)))
    return pairs / (time.perf_counter() - started)


@dataclass(frozen=True, slots=True)
class Cost:
    """Pairs a second, CPU milliseconds of a pair here and in PostgreSQL, clients that wait for a lock."""

    pairs: float
    client_millis: float
    server_millis: float
    waiting: float

    def __str__(self) -> str:
        return (
            f"{self.pairs:.0f} pairs a second; CPU of a pair: {self.client_millis:.1f} ms here, "
            f"{self.server_millis:.1f} ms PostgreSQL; waiting for a row: {self.waiting:.1f} clients"
        )


def cpu_of(server: int) -> tuple[float, float]:
    """Seconds of this process, and of a server's processes, those that have ended too."""
    mine, first = psutil.Process().cpu_times(), psutil.Process(server)
    times = first.cpu_times()
    used = times.user + times.system + times.children_user + times.children_system
    for child in first.children():
        with suppress(psutil.NoSuchProcess):
            one = child.cpu_times()
            used += one.user + one.system
    return mine.user + mine.system, used


async def cost(server: int, url: str, first: int, pairs: int, clients: int) -> Cost:
    """Of so many pairs."""
    waiting: list[int] = []
    sampled = asyncio.create_task(sample(url, waiting))
    mine, theirs = cpu_of(server)
    speed = await run(url, first, pairs, clients)
    mine_then, theirs_then = cpu_of(server)
    sampled.cancel()
    await asyncio.gather(sampled, return_exceptions=True)
    millis = 1000 / pairs
    return Cost(
        speed,
        (mine_then - mine) * millis,
        (theirs_then - theirs) * millis,
        sum(waiting) / (len(waiting) or 1),
    )


async def sample(url: str, waiting: list[int]) -> None:
    """Again and again, how many sessions wait for a lock."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while True:
            found = await (await connection.execute(asked)).fetchone()
            assert found is not None
            waiting.append(found[0])
            await asyncio.sleep(0.1)


async def measure(server: int, owner_url: str, pairs: int, clients: int) -> bool:
    await prepare(owner_url)
    url = as_server(owner_url)
    stores = await open_stores(postgres_engine(url), postgres_engine(url))
    alone = max(1, pairs // 20)
    try:
        granted = MicroCredits((alone + pairs) * CEILING)
        await stores.tenants.create(TENANT, "")
        async with stores.ledger.books(TENANT) as books:
            await books.grant(TENANT, "start", granted, "")
        print(f"{alone} pairs, one client: {await cost(server, url, 0, alone, 1)}", flush=True)
        many = await cost(server, url, 1, pairs, clients)
        print(f"{pairs} pairs, {clients} clients, one tenant: {many}", flush=True)
        findings = await audit(stores.ledger_database, stores.clock)
        balance = await stores.ledger.balance(TENANT)
        usage = await stores.usages.of(TENANT, Period())
        conserved = (
            not findings
            and usage.spent == (alone + pairs) * CHARGE
            and (balance.available, balance.held) == (granted - usage.spent, 0)
        )
        print(f"conserved: {'yes' if conserved else f'NO: {findings} {balance} {usage}'}")
        return conserved
    finally:
        await stores.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--durable", action="store_true", help="commits wait for the disk")
    arguments = parser.parse_args()
    programs = postgres_programs()
    if programs is None:
        raise SystemExit("PostgreSQL's server programs are not installed")
    server = PostgresServer(programs, DURABLE if arguments.durable else {})
    try:
        server.start()
        with server.database() as url:
            print("commits wait for the disk" if arguments.durable else "commits do not wait for the disk")
            if not asyncio.run(measure(server.pid, url, arguments.pairs, arguments.clients)):
                raise SystemExit(1)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
