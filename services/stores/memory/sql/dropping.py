"""How snapshots go: in the transaction of whoever removes text. See services/stores/memory/snapshots.py."""

from sqlalchemy import bindparam, delete
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.scope import Scope
from services.stores.memory.sql import schema
from services.stores.sql.rows import insert_or_add

_GONE = [
    delete(table).where(table.c.scope == bindparam("in_scope"))
    for table in (schema.snapshots, schema.snapshot_parts)
]


async def drop_snapshots(connection: AsyncConnection, scope: Scope) -> None:
    """Every snapshot of a graph goes, and every mark is over.

    Last in a transaction, after `count_change`: whoever keeps a snapshot, and whoever drops, waits from here
    to the end.
    """
    await insert_or_add(connection, schema.snapshot_drops, {"scope": scope.key, "drops": 1}, "drops")
    for gone in _GONE:
        await connection.execute(gone, {"in_scope": scope.key})
