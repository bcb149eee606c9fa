"""The ledger: opens the books in a transaction, lists entries, and sweeps holds whose time has run out."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Row, Select, and_, exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.credits.books import Books
from gateway.credits.money import MicroCredits
from gateway.credits.values import (
    TENANT_ACCOUNTS,
    Account,
    Balance,
    Entry,
    EntryFilter,
    EntryKind,
    Hold,
    HoldId,
)
from gateway.store.clock import DatabaseClock
from gateway.store.tables import holds, jobs, journal_entries, journal_groups
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.paging import Listed, NotAPosition, Page
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across, OfTenant

SWEEP_BATCH = 200
"""Holds that one sweep ends at most, so that its transaction stays short."""


class Ledger:
    """Credits of every tenant, in one database."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    @asynccontextmanager
    async def books(self, tenant: TenantId) -> AsyncIterator[Books]:
        """The ledger's operations for a tenant in a transaction of their own: all of them happen, or none."""
        async with self._database.write(OfTenant(tenant)) as connection:
            yield self.within(connection)

    def within(self, connection: AsyncConnection) -> Books:
        """The ledger's operations in the caller's transaction on the same database."""
        return Books(connection, self._clock)

    async def balance(self, tenant: TenantId) -> Balance:
        """What the tenant has. Raises TenantNotFound."""
        async with self._database.read(OfTenant(tenant)) as connection:
            return await self.within(connection).balance(tenant)

    async def newest(self, tenant: TenantId) -> tuple[int, Balance]:
        """The id of the newest entry of the tenant's accounts, 0 for none, and the balance with it.

        Raises TenantNotFound.
        """
        mine = and_(journal_entries.c.tenant == tenant, journal_entries.c.account.in_(TENANT_ACCOUNTS))
        query = select(journal_entries.c.id).where(mine).order_by(journal_entries.c.id.desc()).limit(1)
        async with self._database.read(OfTenant(tenant)) as connection:
            entry = (await connection.execute(query)).scalar_one_or_none()
            return entry or 0, await self.within(connection).balance(tenant)

    async def hold(self, tenant: TenantId, hold: HoldId) -> Hold | None:
        """A hold of the tenant, as it stands."""
        async with self._database.read(OfTenant(tenant)) as connection:
            return await self.within(connection).find(tenant, hold)

    async def entries(self, tenant: TenantId, where: EntryFilter, page: Page) -> Listed[Entry]:
        """The entries of the tenant's own accounts, newest first; stable while more are written.

        Raises ValueError for a position that no list of entries gave.
        """
        query = _entries(tenant).order_by(journal_entries.c.id.desc()).limit(page.size + 1)
        if page.after:
            if not page.after.isdecimal() or int(page.after) >= 2**63:
                raise NotAPosition
            query = query.where(journal_entries.c.id < int(page.after))
        if where.job:
            query = query.where(journal_groups.c.job == where.job)
        if where.kinds:
            query = query.where(journal_entries.c.kind.in_(where.kinds))
        if where.since is not None:
            query = query.where(journal_groups.c.created_at >= where.since)
        if where.until is not None:
            query = query.where(journal_groups.c.created_at < where.until)
        async with self._database.read(OfTenant(tenant)) as connection:
            rows = (await connection.execute(query)).all()
        items = [_entry_of(row) for row in rows[: page.size]]
        return Listed(items, str(items[-1].id) if len(rows) > page.size else "")

    async def entries_of(self, tenant: TenantId, group: int) -> Sequence[Entry]:
        """The tenant's entries of one journal group, in the order in which they were written."""
        query = _entries(tenant).where(journal_groups.c.id == group).order_by(journal_entries.c.id)
        async with self._database.read(OfTenant(tenant)) as connection:
            return [_entry_of(row) for row in await connection.execute(query)]

    async def renew_live(self, ttl_seconds: float) -> int:
        """Lets the holds of unfinished jobs live on, once half of their time is over. Answers how many.

        So what is told of a hold's end is true, and a job that is done by a process that this database can't
        see keeps its credits. Safe from many processes at once.
        """
        live = exists().where(jobs.c.hold == holds.c.id, jobs.c.finished_at.is_(None))
        due = holds.c.expires_at < self._clock.after(ttl_seconds / 2)
        async with self._database.write(Across("sweep")) as connection:
            renewed = await connection.execute(
                update(holds)
                .where(holds.c.ended_at.is_(None), due, live)
                .values(expires_at=self._clock.after(ttl_seconds))
            )
        return renewed.rowcount

    async def sweep(self) -> int:
        """Ends open holds whose time has run out by the database's clock and that no live job needs.

        Answers how many. Safe from many processes at once.
        """
        live = exists().where(jobs.c.hold == holds.c.id, jobs.c.finished_at.is_(None))
        due = (
            select(holds.c.tenant, holds.c.id)
            .where(holds.c.ended_at.is_(None), holds.c.expires_at <= self._clock.now(), ~live)
            .order_by(holds.c.id)
            .limit(SWEEP_BATCH)
        )
        if self._database.engine.dialect.name == "postgresql":
            due = due.with_for_update(skip_locked=True)
        async with self._database.write(Across("sweep")) as connection:
            books = self.within(connection)
            rows = (await connection.execute(due)).all()
            for row in rows:
                await books.expire(row.tenant, row.id)
        return len(rows)


def _entries(tenant: TenantId) -> Select[Any]:
    return (
        select(
            journal_entries,
            journal_groups.c.created_at,
            journal_groups.c.job,
            journal_groups.c.request_key,
            journal_groups.c.reason,
            journal_groups.c.price_version,
        )
        .join(journal_groups, journal_groups.c.id == journal_entries.c.group)
        .where(journal_entries.c.tenant == tenant, journal_entries.c.account.in_(TENANT_ACCOUNTS))
    )


def _entry_of(row: Row[Any]) -> Entry:
    return Entry(
        id=row.id,
        group=row.group,
        created_at=Instant(row.created_at),
        account=Account(row.account),
        kind=EntryKind(row.kind),
        amount=MicroCredits(row.amount),
        balance_after=MicroCredits(row.balance_after),
        job=row.job,
        request_key=row.request_key,
        reason=row.reason,
        price_version=row.price_version,
    )
