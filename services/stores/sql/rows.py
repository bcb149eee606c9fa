"""Rows: batched idempotent writes, column types that sort alike on both dialects, text that can be stored."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Insert, String, Table, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from services.stores.errors import UnstorableText
from services.stores.storable import is_storable

Row = Mapping[str, Any]

Key = String().with_variant(String(collation="C"), "postgresql")
"""Ids and normalised keys: compared by code points, as Python and SQLite do, in any locale."""
Prose = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that is never searched by SQL."""
Int64 = BigInteger()
"""Instants (microseconds), revisions, amounts."""


async def insert_new(connection: AsyncConnection, table: Table, rows: Sequence[Row]) -> int:
    """Inserts rows; those whose key is there already are left as they are. Rows name the same columns.

    Answers how many are new. Raises UnstorableText before sending anything.
    """
    if not rows:
        return 0
    inserting = _inserting(connection.dialect.name, table)
    inserted = await connection.execute(inserting, _ordered(table, rows))
    return inserted.rowcount


async def insert_or_update(
    connection: AsyncConnection,
    table: Table,
    rows: Sequence[Row],
    update: Sequence[str],
    where: ColumnElement[bool] | None = None,
) -> None:
    """Inserts rows; where the primary key is there already, the columns `update` take the new values.

    `where` limits that to rows that, as they are stored, meet it; others are left as they are.
    Raises UnstorableText before sending anything.
    """
    if rows:
        dialect, columns = connection.dialect.name, tuple(update)
        if where is None:
            updating = _updating(dialect, table, columns)
        else:
            updating = _update(dialect, table, columns, where)
        await connection.execute(updating, _ordered(table, rows))


async def insert_or_add(connection: AsyncConnection, table: Table, row: Row, column: str) -> None:
    """Inserts a row; where its primary key is there already, its `column` is added to what is there.

    Raises UnstorableText before sending anything.
    """
    await connection.execute(_adding(connection.dialect.name, table, column), _ordered(table, [row]))


def check_storable(rows: Iterable[Row]) -> None:
    """Raises UnstorableText if a text of these rows can't be stored. Names the column, never the text."""
    for row in rows:
        for name, value in row.items():
            if isinstance(value, str) and not is_storable(value):
                raise UnstorableText(f"{name} holds NUL or a lone surrogate")


def _dialect(name: str) -> Any:
    return postgresql if name == "postgresql" else sqlite


@cache
def _inserting(dialect: str, table: Table) -> Insert:
    """Made once: to make a statement, and to see that it was compiled before, costs more than to send it."""
    inserting: Insert = _dialect(dialect).insert(table).on_conflict_do_nothing()
    return inserting.execution_options(preserve_rowcount=True)


@cache
def _updating(dialect: str, table: Table, update: tuple[str, ...]) -> Insert:
    """Made once, as `_inserting`."""
    return _update(dialect, table, update, None)


@cache
def _adding(dialect: str, table: Table, column: str) -> Insert:
    """Made once, as `_inserting`."""
    insert = _dialect(dialect).insert(table)
    adding: Insert = insert.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={column: table.c[column] + insert.excluded[column]},
    )
    return adding


def _update(dialect: str, table: Table, update: tuple[str, ...], where: ColumnElement[bool] | None) -> Insert:
    insert = _dialect(dialect).insert(table)
    updating: Insert = insert.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={name: insert.excluded[name] for name in update},
        where=where,
    )
    return updating


def _ordered(table: Table, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Checked, and in the order of keys: two writers of the same rows then wait instead of deadlocking."""
    check_storable(rows)
    key = [column.name for column in table.primary_key.columns]
    return [dict(row) for row in sorted(rows, key=lambda row: tuple(row[name] for name in key))]
