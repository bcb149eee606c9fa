"""Retention: which graphs are due to be looked through for what long ended, each by one job at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors import GraphNotFound
from gateway.store.clock import DatabaseClock
from gateway.store.erasing import refuse_erased
from gateway.store.job_values import Marking
from gateway.store.tables import graphs
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.ids import JobId
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across

EVERY_SECONDS = 86_400.0
"""How often a graph is looked through: no rule names less than a day."""
AT_ONCE = 20
"""Graphs that one round begins, so that a round stays short."""
_SWEEP = Across("retention: a round meets the graphs of every tenant")


@dataclass(frozen=True, slots=True)
class Due:
    """A graph with rules, and since when it is due."""

    scope: Scope
    since: int


def first_due(settings: GraphSettings, clock: DatabaseClock) -> ColumnElement[int] | None:
    """When a graph that is given these settings is due first: at once, or never without rules."""
    return clock.now() if settings.retention else None


class Retention:
    """The graphs of every tenant, by when they are due."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def due(self) -> Sequence[Due]:
        """Those that have been due for longest; at most AT_ONCE."""
        query = (
            select(graphs.c.tenant, graphs.c.id, graphs.c.origin, graphs.c.retention_due_at)
            .where(graphs.c.retention_due_at <= self._clock.now(), graphs.c.import_owner.is_(None))
            .order_by(graphs.c.retention_due_at, graphs.c.tenant, graphs.c.id)
            .limit(AT_ONCE)
        )
        async with self._database.read(_SWEEP) as connection:
            rows = (await connection.execute(query)).all()
        return [
            Due(Scope(TenantId(tenant), GraphId(id), origin or ""), since)
            for tenant, id, origin, since in rows
        ]

    def marking(self, due: Due) -> Marking:
        """What makes a graph due later, in the transaction that accepts its job: one process does so.

        Raises GraphNotFound where another one did or its rules are others by now, and as `refuse_erased`.
        """

        async def mark(connection: AsyncConnection, _job: JobId) -> None:
            scope = due.scope
            await refuse_erased(connection, self._clock, scope, writing=True)
            mine = and_(graphs.c.tenant == scope.tenant, graphs.c.id == scope.graph)
            marked = await connection.execute(
                update(graphs)
                .where(mine, graphs.c.retention_due_at == due.since)
                .values(retention_due_at=self._clock.after(EVERY_SECONDS))
            )
            if not marked.rowcount:
                raise GraphNotFound(scope.graph)

        return mark

    async def put_off(self, due: Due, seconds: float) -> None:
        """A graph that can't be written just now is looked at again in a while."""
        mine = and_(graphs.c.tenant == due.scope.tenant, graphs.c.id == due.scope.graph)
        async with self._database.write(due.scope) as connection:
            await connection.execute(
                update(graphs)
                .where(mine, graphs.c.retention_due_at == due.since)
                .values(retention_due_at=self._clock.after(seconds))
            )
