"""The journal: groups of entries that sum to zero, and the balances they project, in one transaction."""

from collections.abc import Sequence

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.credits.money import MAX_AMOUNT, MicroCredits
from gateway.credits.values import TENANT_ACCOUNTS, Account, Line, Movement
from gateway.errors import InsufficientCredits, TenantNotFound
from gateway.store.clock import DatabaseClock
from gateway.store.once import insert_once
from gateway.store.tables import accounts, journal_entries, journal_groups
from services.domain.scope import TenantId
from services.stores.sql.rows import insert_new

_ORDER = {account: order for order, account in enumerate(sorted(Account))}


async def open_accounts(connection: AsyncConnection, tenant: TenantId) -> None:
    """Makes the accounts of a tenant, empty. Idempotent."""
    rows = [{"tenant": tenant, "account": account, "balance": 0} for account in Account]
    await insert_new(connection, accounts, rows)


async def post(
    connection: AsyncConnection,
    clock: DatabaseClock,
    tenant: TenantId,
    movement: Movement,
    lines: Sequence[Line],
) -> int | None:
    """Writes a group and moves its credits; None, and nothing moved, when the movement is there already.

    Raises InsufficientCredits when `available` would fall below zero: by a conditional update, so that two
    callers can't both pass. Raises TenantNotFound without accounts.
    """
    assert sum(line.amount for line in lines) == 0, "a group sums to zero"
    assert all(abs(line.amount) <= MAX_AMOUNT for line in lines)
    values = {
        "tenant": tenant,
        "key": movement.key,
        "job": movement.job,
        "request_key": movement.request_key,
        "reason": movement.reason,
        "price_version": movement.price_version,
        "created_at": clock.now(),
    }
    group = await insert_once(connection, journal_groups, values)
    if group is None:
        return None
    entries = []
    # One order of accounts for everyone: two transactions of a tenant then wait, and never deadlock.
    for line in sorted(lines, key=lambda line: _ORDER[line.account]):
        if line.amount:
            entries.append(
                {
                    "group": group,
                    "tenant": tenant,
                    "account": line.account,
                    "kind": line.kind,
                    "amount": line.amount,
                    "balance_after": await _move(connection, tenant, line),
                }
            )
    if entries:
        await connection.execute(insert(journal_entries), entries)
    return int(group)


async def _move(connection: AsyncConnection, tenant: TenantId, line: Line) -> MicroCredits:
    row = (accounts.c.tenant == tenant) & (accounts.c.account == line.account)
    enough = row
    if line.account in TENANT_ACCOUNTS and line.amount < 0:
        enough = row & (accounts.c.balance >= -line.amount)
    moved = await connection.execute(
        update(accounts)
        .where(enough)
        .values(balance=accounts.c.balance + line.amount)
        .returning(accounts.c.balance)
    )
    balance = moved.scalar_one_or_none()
    if balance is not None:
        return MicroCredits(balance)
    left = (await connection.execute(select(accounts.c.balance).where(row))).scalar_one_or_none()
    if left is None:
        raise TenantNotFound(tenant)
    assert line.account is Account.AVAILABLE, "what is held covers every hold"
    raise InsufficientCredits(required=-line.amount, available=left)
