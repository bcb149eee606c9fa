"""Inserting a row exactly once: what makes accepting, holding and spending idempotent."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from services.stores.sql.rows import check_storable


async def insert_once(connection: AsyncConnection, table: Table, values: Mapping[str, Any]) -> Any | None:
    """Inserts a row unless one of its keys is there already.

    Answers the first column of its primary key; None when it was there, and nothing changed. Waits for
    another transaction that is inserting the same key. Raises UnstorableText before sending anything.
    """
    check_storable([values])
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    made = await connection.execute(
        dialect.insert(table)
        .values(values)
        .on_conflict_do_nothing()
        .returning(next(iter(table.primary_key.columns)))
    )
    return made.scalar_one_or_none()
