"""Erasures: what is being erased, which no call reaches meanwhile; and their tombstones.

begin → (everything else is refused) → finish. The tombstone keeps ids, times and counts, no content.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, and_, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors import (
    EntityBeingErased,
    ErasureNotFound,
    GraphBeingErased,
    GraphNotFound,
    TenantNotFound,
)
from gateway.store.clock import DatabaseClock
from gateway.store.erasing import open_erasures
from gateway.store.job_values import Accepted, JobState, Order
from gateway.store.jobs import Jobs
from gateway.store.tables import api_keys, erasures, graphs, jobs, tenants
from gateway.store.tenants import TenantState
from palimpsest.v1.privacy_pb2 import Erasure as Reports
from palimpsest.v1.privacy_pb2 import ErasureReport
from services.domain.ids import JobId
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.sql.database import Database
from services.stores.sql.isolation import OfTenant


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure as it stands. `scope.graph` is "" for a whole tenant's, `entity` for a whole graph's."""

    id: JobId
    scope: Scope
    entity: str
    state: JobState
    created_at: Instant
    finished_at: Instant | None
    reports: Sequence[ErasureReport]


class Erasures:
    """Erasures of every tenant. Raises StoreUnavailable."""

    def __init__(self, database: Database, clock: DatabaseClock, jobs: Jobs) -> None:
        self._database = database
        self._clock = clock
        self._jobs = jobs

    async def begin(self, order: Order, entity: str = "") -> Accepted:
        """Marks what is to be erased, in one transaction with the job that erases it.

        From then on calls on the graph are refused (for an entity: writes to it), its jobs are asked to
        stop, and for a tenant its keys are revoked. The same key with the same payload answers the first
        job. Raises GraphNotFound, TenantNotFound, RequestIdReused, GraphBeingErased, EntityBeingErased.
        """
        scope = order.scope

        async def mark(connection: AsyncConnection, job: JobId) -> None:
            # Locked first: of two erasures the second finds the mark of the first.
            await self._lock(connection, scope)
            await _refuse_a_second(connection, self._clock, scope)
            await connection.execute(insert(erasures).values(self._row(job, scope, entity)))
            if not entity:
                await self._stop(connection, scope)

        return await self._jobs.accept(order, marking=mark)

    async def find(self, tenant: TenantId, id: JobId) -> Erasure:
        """Raises ErasureNotFound; the same for another tenant's."""
        query = select(erasures, jobs.c.state.label("job_state")).outerjoin(jobs, jobs.c.id == erasures.c.id)
        query = query.where(erasures.c.id == id, erasures.c.tenant == tenant)
        async with self._database.read(OfTenant(tenant)) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise ErasureNotFound(id)
        return _erasure_of(row)

    async def finish(self, id: JobId, scope: Scope, reports: Sequence[ErasureReport]) -> None:
        """Lifts the mark and leaves the tombstone; the graph's own row goes with it. Idempotent."""
        this = and_(erasures.c.id == id, erasures.c.finished_at.is_(None))
        done = {
            "state": JobState.SUCCEEDED,
            "finished_at": self._clock.now(),
            "reports": Reports(reports=reports).SerializeToString(),
        }
        async with self._database.write(scope) as connection:
            entity = (await connection.execute(select(erasures.c.entity).where(this))).scalar_one_or_none()
            if entity is None:
                return
            await connection.execute(update(erasures).where(this).values(done))
            if not entity:
                await self._covered(connection, scope)

    async def _covered(self, connection: AsyncConnection, scope: Scope) -> None:
        """What failed before has been done with this; and the graph's own row goes."""
        left = and_(erasures.c.tenant == scope.tenant, erasures.c.finished_at.is_(None))
        if scope.graph:
            left = and_(left, erasures.c.graph == scope.graph)
            mine = and_(graphs.c.tenant == scope.tenant, graphs.c.id == scope.graph)
            await connection.execute(graphs.delete().where(mine))
        failed = {"state": JobState.FAILED, "finished_at": self._clock.now()}
        await connection.execute(update(erasures).where(left).values(failed))

    def _row(self, id: JobId, scope: Scope, entity: str) -> dict[str, Any]:
        return {
            "id": id,
            "tenant": scope.tenant,
            "graph": scope.graph,
            "entity": entity,
            "state": JobState.RUNNING,
            "created_at": self._clock.now(),
            "reports": b"",
        }

    async def _lock(self, connection: AsyncConnection, scope: Scope) -> None:
        mine = and_(graphs.c.tenant == scope.tenant, graphs.c.id == scope.graph)
        mine = and_(mine, graphs.c.import_owner.is_(None))
        query = select(graphs.c.id).where(mine) if scope.graph else select(tenants.c.id)
        if not scope.graph:
            query = query.where(tenants.c.id == scope.tenant)
        if (await connection.execute(query.with_for_update())).one_or_none() is None:
            raise GraphNotFound(scope.graph) if scope.graph else TenantNotFound(scope.tenant)

    async def _stop(self, connection: AsyncConnection, scope: Scope) -> None:
        theirs = and_(jobs.c.tenant == scope.tenant, jobs.c.finished_at.is_(None))
        if scope.graph:
            theirs = and_(theirs, jobs.c.graph == scope.graph)
        else:
            keys = and_(api_keys.c.tenant == scope.tenant, api_keys.c.revoked_at.is_(None))
            await connection.execute(update(api_keys).where(keys).values(revoked_at=self._clock.now()))
            this = tenants.c.id == scope.tenant
            await connection.execute(update(tenants).where(this).values(state=TenantState.SUSPENDED))
        await connection.execute(
            update(jobs)
            .where(theirs)
            # Whatever run has one loses it: the erasure ends it.
            .values(cancel_requested=1, version=jobs.c.version + 1, epoch=func.coalesce(jobs.c.epoch, 0) + 1)
        )


async def _refuse_a_second(connection: AsyncConnection, clock: DatabaseClock, scope: Scope) -> None:
    """An erasure that failed is no obstacle: its mark stays until another one succeeds."""
    query = (
        open_erasures(clock, scope).join(jobs, jobs.c.id == erasures.c.id).where(jobs.c.finished_at.is_(None))
    )
    found = set((await connection.execute(query)).scalars())
    if found:
        raise GraphBeingErased(scope.graph) if "" in found else EntityBeingErased(scope.graph)


def _erasure_of(row: Row[Any]) -> Erasure:
    finished = None if row.finished_at is None else Instant(row.finished_at)
    return Erasure(
        id=JobId(row.id),
        scope=Scope(TenantId(row.tenant), GraphId(row.graph)),
        entity=row.entity,
        state=JobState(row.state if finished is not None or row.job_state is None else row.job_state),
        created_at=Instant(row.created_at),
        finished_at=finished,
        reports=tuple(Reports.FromString(row.reports).reports),
    )
