"""All that the gateway keeps, opened together over two databases: the ledger's and the jobs'."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.credits.ledger import Ledger
from gateway.credits.prices import Prices
from gateway.credits.usage import Usages
from gateway.credits.watching import BalanceWatch
from gateway.store.backlog import Backlog
from gateway.store.bell import Bell
from gateway.store.calls import CallLog
from gateway.store.clock import DatabaseClock
from gateway.store.content import Content
from gateway.store.erasures import Erasures
from gateway.store.executors import Executors
from gateway.store.follow_ups import FollowUps
from gateway.store.graphs import Graphs
from gateway.store.imports import Imports
from gateway.store.job_view import JobView
from gateway.store.jobs import HOLD_SECONDS, Jobs
from gateway.store.keys import ApiKeys
from gateway.store.progress import Progress
from gateway.store.quotas import Quotas
from gateway.store.requests import Requests
from gateway.store.retention import Retention
from gateway.store.rules import IngestionRules
from gateway.store.schema import LEDGER_SCHEMA, PROGRESS_SCHEMA
from gateway.store.tenants import Limits, Tenants
from services.stores.sql.database import Database
from services.stores.sql.migrations import open_schema

WATCH_POLL_SECONDS = 0.5
"""How soon a watcher sees a change that another process made."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The gateway's stores. They share the two databases, which `close` closes."""

    ledger_database: Database
    progress_database: Database
    clock: DatabaseClock
    ledger: Ledger
    prices: Prices
    usages: Usages
    tenants: Tenants
    keys: ApiKeys
    graphs: Graphs
    imports: Imports
    retention: Retention
    rules: IngestionRules
    requests: Requests
    calls: CallLog
    jobs: Jobs
    erasures: Erasures
    content: Content
    progress: Progress
    executors: Executors
    follow_ups: FollowUps
    backlog: Backlog
    job_view: JobView
    balance_watch: BalanceWatch

    async def sweep(self) -> None:
        """What time undoes: holds that ran out, old request keys, old changes, artifacts left by a crash.

        Holds of unfinished jobs live on.

        Idempotent; run it every few seconds, from any number of processes.
        """
        await self.ledger.renew_live(HOLD_SECONDS)
        await self.ledger.sweep()
        await self.requests.sweep()
        await self.progress.drop_old_events()
        left = await self.progress.jobs_with_artifacts()
        for job in set(left) - {job.id for job in await self.jobs.unfinished()} if left else ():
            await self.progress.drop_artifacts(job)

    async def close(self) -> None:
        await self.ledger_database.close()
        await self.progress_database.close()


async def open_stores(
    ledger_engine: AsyncEngine,
    progress_engine: AsyncEngine,
    *,
    key_environment: str = "live",
    clock: DatabaseClock | None = None,
    tenant_limits: Limits | None = None,
    migrate_ledger: bool = True,
    migrate_progress: bool = True,
) -> Stores:
    """Opens the stores, whose tables are migrated if asked. On PostgreSQL both may share a database.

    `tenant_limits` are of tenants without their own, as far as stores hold tenants to them.
    Raises SchemaUnusable.
    """
    await open_schema(ledger_engine, LEDGER_SCHEMA, migrate=migrate_ledger)
    await open_schema(progress_engine, PROGRESS_SCHEMA, migrate=migrate_progress)
    clock = clock or DatabaseClock()
    database = Database(ledger_engine, LEDGER_SCHEMA.component)
    progress_database = Database(progress_engine, PROGRESS_SCHEMA.component)
    bell = Bell()
    quotas = Quotas(clock, tenant_limits or Limits())
    ledger, graphs = Ledger(database, clock), Graphs(database, clock, quotas)
    jobs = Jobs(database, clock, ledger, graphs, quotas, bell)
    progress = Progress(progress_database, clock, bell)
    return Stores(
        ledger_database=database,
        progress_database=progress_database,
        clock=clock,
        ledger=ledger,
        prices=Prices(database, clock),
        usages=Usages(database, clock),
        tenants=Tenants(database, clock),
        keys=ApiKeys(database, clock, key_environment),
        graphs=graphs,
        imports=Imports(database, clock, quotas),
        retention=Retention(database, clock),
        rules=IngestionRules(database, clock, graphs),
        requests=Requests(database, clock),
        calls=CallLog(database, clock),
        jobs=jobs,
        erasures=Erasures(database, clock, jobs),
        content=Content(database, progress_database),
        progress=progress,
        executors=Executors(database, clock),
        follow_ups=FollowUps(database, clock),
        backlog=Backlog(database, clock),
        job_view=JobView(jobs, progress, bell, WATCH_POLL_SECONDS),
        balance_watch=BalanceWatch(ledger, WATCH_POLL_SECONDS),
    )
