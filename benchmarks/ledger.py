"""Hold and settle on PostgreSQL: pairs a second from several clients on one hot tenant, and nothing lost.

Starts a PostgreSQL of its own on loopback. Each pair holds credits in one transaction, then spends and
settles in another, as a job's acceptance and end do; all clients want the same account. Afterwards the audit
must find nothing and the balance must be what was granted less what was charged.

Run: python -m benchmarks.ledger [--pairs N] [--clients N] [--durable]
"""

import argparse
import asyncio
import time

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
from tests.doubles.postgres_server import PostgresServer
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


async def measure(url: str, pairs: int, clients: int) -> bool:
    stores = await open_stores(postgres_engine(url), postgres_engine(url))
    try:
        granted = MicroCredits(pairs * CEILING)
        await stores.tenants.create(TENANT, "")
        async with stores.ledger.books(TENANT) as books:
            await books.grant(TENANT, "start", granted, "")
        shares = [pairs // clients + (number < pairs % clients) for number in range(clients)]
        started = time.perf_counter()
        await asyncio.gather(*(client(url, number, share) for number, share in enumerate(shares)))
        seconds = time.perf_counter() - started
        print(
            f"{pairs} pairs, {clients} clients, one tenant: {pairs / seconds:.0f} pairs a second", flush=True
        )
        findings = await audit(stores.ledger_database, stores.clock)
        balance = await stores.ledger.balance(TENANT)
        usage = await stores.usages.of(TENANT, Period())
        conserved = (
            not findings
            and usage.spent == pairs * CHARGE
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
            if not asyncio.run(measure(url, arguments.pairs, arguments.clients)):
                raise SystemExit(1)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
