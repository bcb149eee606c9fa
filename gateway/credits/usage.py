"""Usage: what a tenant did and paid in a period, summed up from the ledger's database in one snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.credits.books import Books
from gateway.credits.money import MicroCredits
from gateway.credits.values import Account, Balance, EntryKind
from gateway.store.clock import DatabaseClock
from gateway.store.tables import calls, graphs, holds, jobs, journal_entries, journal_groups, spends
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.sql.database import Database
from services.stores.sql.isolation import OfTenant


@dataclass(frozen=True, slots=True)
class Period:
    """Half-open; None is without a bound."""

    since: Instant | None = None
    until: Instant | None = None

    def holds(self, at: ColumnElement[Any]) -> list[ColumnElement[bool]]:
        """The conditions under which a time lies in it."""
        found: list[ColumnElement[bool]] = []
        if self.since is not None:
            found.append(at >= self.since)
        if self.until is not None:
            found.append(at < self.until)
        return found


@dataclass(frozen=True, slots=True)
class Usage:
    """`balance` and `graphs` are of now, the rest of the period.

    `spent` is what was charged less what was refunded; `goodwill` what work cost that was not charged;
    `calls` counts the tenant's calls that changed something, by RPC, a repeated one once.
    """

    balance: Balance
    spent: MicroCredits
    goodwill: MicroCredits
    jobs: int
    calls: Mapping[str, int]
    tokens: int
    graphs: int


class Usages:
    """Reads of the ledger's database; nothing is counted beside it, so nothing can differ from it."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, tenant: TenantId, period: Period) -> Usage:
        """Raises TenantNotFound."""
        async with self._database.read(OfTenant(tenant)) as connection:
            balance = await Books(connection, self._clock).balance(tenant)
            spent, goodwill = await _moved(connection, tenant, period)
            ended = jobs.c.finished_at.is_not(None), *period.holds(jobs.c.finished_at)
            understood = (
                select(func.coalesce(func.sum(spends.c.tokens), 0))
                .join(holds, holds.c.id == spends.c.hold)
                .where(holds.c.tenant == tenant, *period.holds(spends.c.created_at))
            )
            return Usage(
                balance,
                spent,
                goodwill,
                jobs=await _number(connection, select(func.count()).where(jobs.c.tenant == tenant, *ended)),
                calls=await _calls(connection, tenant, period),
                tokens=await _number(connection, understood),
                graphs=await _number(connection, select(func.count()).where(graphs.c.tenant == tenant)),
            )


async def _number(connection: AsyncConnection, query: Any) -> int:
    return int((await connection.execute(query)).scalar_one())


async def _moved(
    connection: AsyncConnection, tenant: TenantId, period: Period
) -> tuple[MicroCredits, MicroCredits]:
    """What came to revenue as charges, and what goodwill bore."""
    query = (
        select(journal_entries.c.account, func.sum(journal_entries.c.amount).label("amount"))
        .join(journal_groups, journal_groups.c.id == journal_entries.c.group)
        .where(
            journal_entries.c.tenant == tenant,
            (journal_entries.c.account == Account.GOODWILL)
            | (
                (journal_entries.c.account == Account.REVENUE)
                & (journal_entries.c.kind != EntryKind.GOODWILL)
            ),
            *period.holds(journal_groups.c.created_at),
        )
        .group_by(journal_entries.c.account)
    )
    sums = {row.account: int(row.amount) for row in await connection.execute(query)}
    return MicroCredits(sums.get(Account.REVENUE, 0)), MicroCredits(-sums.get(Account.GOODWILL, 0))


async def _calls(connection: AsyncConnection, tenant: TenantId, period: Period) -> Mapping[str, int]:
    query = (
        select(calls.c.action, func.count().label("times"))
        .where(calls.c.tenant == tenant, calls.c.operator == 0, *period.holds(calls.c.at))
        .group_by(calls.c.action)
    )
    return {row.action: int(row.times) for row in await connection.execute(query)}
