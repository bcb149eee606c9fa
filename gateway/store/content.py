"""Content: what the gateway's tables keep of a graph or a tenant beside credits; counted, and erased.

What was spent, held and refunded stays, with ids, amounts and times: the ledger's rows lose request keys and
reasons. The log of calls keeps who asked for an erasure.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Table, and_, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store.job_values import Job
from gateway.store.lease import JobTakenOver
from gateway.store.reading_jobs import job_of, select_jobs
from gateway.store.tables import (
    PROGRESS,
    api_keys,
    calls,
    erasures,
    follow_ups,
    graphs,
    holds,
    ingestion_rules,
    jobs,
    journal_groups,
    outbox,
    requests,
    tenants,
)
from services.domain.ids import JobId
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across

_ERASURE = Across("erasure: rows of a graph, or of a tenant, in every table")
_KEPT_CALLS = ("EraseGraph", "EraseEntity", "EraseTenant")


class Content:
    """Of the ledger's and the jobs' database. Every method is idempotent. Raises StoreUnavailable."""

    def __init__(self, ledger: Database, progress: Database) -> None:
        self._ledger = ledger
        self._progress = progress

    async def jobs(self, scope: Scope, but: JobId) -> Sequence[Job]:
        """Jobs of a graph, or of a tenant for the graph "", without the erasure's own."""
        async with self._ledger.read(_ERASURE) as connection:
            query = select_jobs().where(_jobs(scope, but)).order_by(jobs.c.id)
            return [job_of(row) for row in (await connection.execute(query)).mappings()]

    async def to_end(self, scope: Scope, erasure: JobId) -> Sequence[Job]:
        """As `jobs`, while the erasure lasts: none of these was begun after it. Raises JobTakenOver."""
        async with self._ledger.write(_ERASURE) as connection:
            await _still(connection, erasure)
            query = select_jobs().where(_jobs(scope, erasure)).order_by(jobs.c.id)
            return [job_of(row) for row in (await connection.execute(query)).mappings()]

    async def rows(self, scope: Scope, but: JobId) -> Mapping[str, int]:
        """How many rows there are, by kind; kinds without any are left out."""
        found: dict[str, int] = {}
        async with self._ledger.read(_ERASURE) as connection:
            for table, these in _rows(scope, but):
                query = select(func.count()).select_from(table).where(these)
                found[table.name] = (await connection.execute(query)).scalar_one()
        ids = [job.id for job in await self.jobs(scope, but)]
        async with self._progress.read(_ERASURE) as connection:
            for table in PROGRESS.sorted_tables:
                found[table.name] = 0
                for chunk in in_chunks(ids):
                    query = select(func.count()).select_from(table).where(table.c.job.in_(chunk))
                    found[table.name] += (await connection.execute(query)).scalar_one()
        return {kind: count for kind, count in found.items() if count}

    async def remove_graph(self, scope: Scope, erasure: JobId) -> None:
        """Forgets a graph of which everything is erased. Raises JobTakenOver."""
        mine = and_(graphs.c.tenant == scope.tenant, graphs.c.id == scope.graph)
        async with self._ledger.write(scope) as connection:
            await _still(connection, erasure)
            await connection.execute(delete(graphs).where(mine))

    async def erase(self, scope: Scope, but: JobId) -> None:
        """Deletes rows of progress first: without its job nothing tells whose they were.

        `but` is the erasure: when it has ended, by whatever run, raises JobTakenOver.
        """
        ids = [job.id for job in await self.to_end(scope, but)]
        async with self._progress.write(_ERASURE) as connection:
            for chunk in in_chunks(ids):
                for table in PROGRESS.sorted_tables:
                    await connection.execute(delete(table).where(table.c.job.in_(chunk)))
        async with self._ledger.write(_ERASURE) as connection:
            await _still(connection, but)
            for chunk in in_chunks(ids):
                await connection.execute(update(holds).where(holds.c.job.in_(chunk)).values(request_key=""))
                await _empty_journal(connection, journal_groups.c.job.in_(chunk))
            mine = and_(graphs.c.tenant == scope.tenant, graphs.c.id == scope.graph)
            # The row itself is what refuses to be made anew; it goes with the mark.
            await connection.execute(update(graphs).where(mine).values(settings=b""))
            for table, these in _rows(scope, but):
                await connection.execute(delete(table).where(these))

    async def erase_tenant(self, scope: Scope, erasure: JobId) -> None:
        """What is left of a tenant are its id, its balance and its ledger, without names and reasons."""
        tenant = scope.tenant
        async with self._ledger.write(_ERASURE) as connection:
            await _still(connection, erasure)
            await connection.execute(
                update(api_keys).where(api_keys.c.tenant == tenant).values(display_name="")
            )
            await connection.execute(
                update(tenants).where(tenants.c.id == tenant).values(display_name="", limits="{}")
            )
            await connection.execute(
                update(holds)
                .where(holds.c.tenant == tenant, holds.c.request_key != "")
                .values(request_key="")
            )
            await _empty_journal(connection, journal_groups.c.tenant == tenant)

    async def compact(self) -> None:
        """SQLite files without what was deleted from them."""
        await self._progress.compact()
        await self._ledger.compact()


async def _still(connection: AsyncConnection, erasure: JobId) -> None:
    """Holds an erasure open for this transaction. A run that slept until it had ended deletes nothing new."""
    query = select(erasures.c.id).where(erasures.c.id == erasure, erasures.c.finished_at.is_(None))
    if (await connection.execute(query.with_for_update())).one_or_none() is None:
        raise JobTakenOver


def _jobs(scope: Scope, but: JobId) -> ColumnElement[bool]:
    mine = and_(jobs.c.tenant == scope.tenant, jobs.c.id != but)
    return and_(mine, jobs.c.graph == scope.graph) if scope.graph else mine


def _rows(scope: Scope, but: JobId) -> Sequence[tuple[Table, ColumnElement[bool]]]:
    """What is deleted of the ledger's database, in order: jobs last, by which others are found."""
    ids = select(jobs.c.id).where(_jobs(scope, but))
    named = and_(calls.c.tenant == scope.tenant, calls.c.action.not_in(_KEPT_CALLS))
    asked = and_(requests.c.tenant == scope.tenant, or_(requests.c.job.is_(None), requests.c.job != but))
    if scope.graph:
        named = and_(named, calls.c.graph == scope.graph)
        # Requests of before the graph was kept with them are told by the log of calls.
        logged = select(calls.c.request).where(named)
        of_graph = or_(requests.c.graph == scope.graph, requests.c.job.in_(ids))
        asked = and_(asked, or_(of_graph, and_(requests.c.graph.is_(None), requests.c.key.in_(logged))))
    ruled = ingestion_rules.c.tenant == scope.tenant
    if scope.graph:
        ruled = and_(ruled, ingestion_rules.c.graph == scope.graph)
    followed = follow_ups.c.tenant == scope.tenant
    if scope.graph:
        followed = and_(followed, follow_ups.c.graph == scope.graph)
    return (
        (follow_ups, followed),
        (ingestion_rules, ruled),
        (requests, asked),
        (calls, named),
        (outbox, outbox.c.job.in_(ids)),
        (jobs, _jobs(scope, but)),
    )


async def _empty_journal(connection: AsyncConnection, these: ColumnElement[bool]) -> None:
    told = or_(journal_groups.c.request_key != "", journal_groups.c.reason != "")
    await connection.execute(update(journal_groups).where(these, told).values(request_key="", reason=""))
