"""Statements with all of theirs as the rows they are: see services/stores/graph/plain.py."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, Table, bindparam, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import StatementId
from services.domain.scope import Scope
from services.stores.graph.plain import PlainPage, PlainRecords, Row
from services.stores.graph.sql import reads, schema
from services.stores.graph.sql.conditions import id_chunks, with_revocations
from services.stores.graph.sql.lists import is_after, position, token
from services.stores.paging import Page
from services.stores.sql.one_of import listed, most_of, one_of
from services.stores.sql.rows import Int64, Key

_STATEMENT = (
    *("id", "subject", "predicate", "object", "literal_kind", "literal_text", "fact", "aspect"),
    *("event_at", "created_at"),
)
_SOURCE = ("episode", "passage", "quote")
_CLAIM = (
    *("statement", "id", "start", "end", "attested_at", "seen", *_SOURCE, "start_precision", "end_precision"),
    *("confidence", "time_text", "recorded_at"),
)
_END = ("statement", "id", "at", "attested_at", *_SOURCE, "precision", "reason", "confidence", "recorded_at")
_DENIAL = ("statement", "id", "start", "until", "attested_at", *_SOURCE, "confidence", "recorded_at")
_SPAN = (
    *("statement", "id", "valid_at", "invalid_at", "known_from", "known_to", "started_by", "ended_by"),
    *("contested", "start_precision", "end_precision", "assumed"),
)


async def scan_plain(connection: AsyncConnection, scope: Scope, page: Page) -> PlainPage:
    """Raises ValueError for a position that this store did not give."""
    asked: dict[str, Any] = {"in_scope": scope.key, "size": page.size + 1}
    if page.after:
        asked["revision"], asked["id"] = position(page.after)
    found = await _read(connection, _statements(begun=bool(page.after)), asked)
    rows = found[: page.size]
    ids = [StatementId(row[0]) for row in rows]
    after = token((rows[-1][-1], rows[-1][0])) if len(found) > page.size else ""
    return PlainPage(
        PlainRecords(
            statements=rows,
            claims=await _of(connection, schema.claims, _CLAIM, scope, ids),
            ends=await _of(connection, schema.ends, _END, scope, ids),
            denials=await _of(connection, schema.denials, _DENIAL, scope, ids),
            verdicts=await reads.verdicts(connection, scope, ids),
            spans=await _of(connection, schema.spans, _SPAN, scope, ids),
        ),
        after,
    )


async def _of(
    connection: AsyncConnection,
    table: Table,
    names: tuple[str, ...],
    scope: Scope,
    ids: Sequence[StatementId],
) -> list[Row]:
    found: list[Row] = []
    dialect = connection.dialect.name
    for chunk in id_chunks(ids, most_of(dialect)):
        asked = {"in_scope": scope.key, "ids": listed(dialect, chunk)}
        found += await _read(connection, _rows(dialect, table, names), asked)
    return found


async def _read(connection: AsyncConnection, query: Select[Any], asked: dict[str, Any]) -> Sequence[Row]:
    rows: Sequence[Row] = (await connection.execute(query, asked)).all()
    return rows


@cache
def _statements(*, begun: bool) -> Select[Any]:
    """A page of a scope's statements, from the first on or after a position; made once."""
    columns = schema.statements.c
    after: ColumnElement[bool] = true()
    if begun:
        after = is_after(columns.created_at, bindparam("revision", type_=Int64), bindparam("id", type_=Key))
    return (
        select(*(columns[name] for name in _STATEMENT))
        .where(columns.scope == bindparam("in_scope"), after)
        .order_by(columns.created_at, columns.id)
        .limit(bindparam("size", type_=Integer()))
    )


@cache
def _rows(dialect: str, table: Table, names: tuple[str, ...]) -> Select[Any]:
    """The rows of some statements, records with what revoked them; made once."""
    columns = [table.c[name] for name in names]
    if "recorded_at" in table.c:
        query = with_revocations(table).with_only_columns(*columns, schema.revocations.c.revoked_at)
    else:
        query = select(*columns)
    return query.where(table.c.scope == bindparam("in_scope"), one_of(dialect, table.c.statement, "ids"))
