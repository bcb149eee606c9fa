"""Quotas: what a tenant may keep and send, counted in the transaction that uses it, by all gateways."""

from typing import Any

from sqlalchemy import Select, and_, func, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors import DailyBytesExceeded, TooManyGraphs
from gateway.store.clock import DAY, SECOND, DatabaseClock
from gateway.store.once import insert_once
from gateway.store.tables import graphs, tenants, text_days
from gateway.store.tenants import Limits, tenant_of
from services.domain.scope import TenantId


class Quotas:
    """Holds tenants to `max_graphs` and `max_bytes_per_day`: their own, else `defaults` (0: no limit).

    The limits are read where they are enforced, so new ones hold at once.
    """

    def __init__(self, clock: DatabaseClock, defaults: Limits) -> None:
        self._clock = clock
        self._defaults = defaults

    async def lock(self, connection: AsyncConnection, tenant: TenantId) -> Limits:
        """From here on transactions that lock the tenant follow one another; answers its limits.

        Whoever locks its account too does that after this.
        """
        limits, _ = await self._limits(connection, _tenant(tenant).with_for_update())
        return limits

    async def graph_made(self, connection: AsyncConnection, tenant: TenantId) -> None:
        """After a graph was inserted. Raises TooManyGraphs, which must undo it."""
        most = (await self.lock(connection, tenant)).max_graphs
        if not most:
            return
        count = select(func.count()).where(graphs.c.tenant == tenant)
        if (await connection.execute(count)).scalar_one() > most:
            raise TooManyGraphs(most)

    async def text_taken(self, connection: AsyncConnection, tenant: TenantId, size: int) -> None:
        """Counts `size` bytes to today (UTC, the database's clock). Raises DailyBytesExceeded."""
        if not size:
            return
        limits, now = await self._limits(connection, _tenant(tenant))
        most, day = limits.max_bytes_per_day, now // DAY
        row = {"tenant": tenant, "day": day, "bytes": 0}
        if await self._add(connection, tenant, day, size, most):
            return
        # The first of a day makes its row; another may just have done so.
        await insert_once(connection, text_days, row)
        if not await self._add(connection, tenant, day, size, most):
            raise DailyBytesExceeded(most, size, ((day + 1) * DAY - now) / SECOND)

    async def _add(
        self, connection: AsyncConnection, tenant: TenantId, day: int, size: int, most: int
    ) -> bool:
        """False when there is no row of that day yet, or no room in it."""
        room = text_days.c.bytes + size <= most if most else true()
        today = and_(text_days.c.tenant == tenant, text_days.c.day == day, room)
        taken = await connection.execute(
            update(text_days).where(today).values(bytes=text_days.c.bytes + size)
        )
        return bool(taken.rowcount)

    async def _limits(self, connection: AsyncConnection, query: Select[Any]) -> tuple[Limits, int]:
        """A tenant's limits, and the database's time."""
        row = (await connection.execute(query.add_columns(self._clock.now().label("now")))).one_or_none()
        if row is None:
            return self._defaults, (await connection.execute(select(self._clock.now()))).scalar_one()
        return tenant_of(row._asdict()).limits.over(self._defaults), row.now


def _tenant(tenant: TenantId) -> Select[Any]:
    return select(tenants).where(tenants.c.id == tenant)
