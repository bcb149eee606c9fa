"""The archive's catalogue in SQL."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, and_, bindparam, func, select, update

from services.domain.ids import Revision, StatementId
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.memory.archive import Moved
from services.stores.memory.sql import schema
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import Row, insert_new
from services.stores.storable import is_storable

_COLUMNS = schema.archive.c
_IS_ARCHIVED = _COLUMNS.archived_at > _COLUMNS.restored_at


class SqlArchiveStore:
    """ArchiveStore over a table of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def apply(self, scope: Scope, moved: Sequence[Moved]) -> None:
        """See the port. Raises UnstorableText before writing anything."""
        rows: list[Row] = [
            {
                "scope": scope.key,
                "statement": one.statement,
                "archived_at": one.archived_at,
                "restored_at": one.restored_at,
            }
            for one in sorted(_latest(moved), key=lambda one: one.statement)
        ]
        if not rows:
            return
        async with self._database.write(scope) as connection:
            await insert_new(connection, schema.archive, [row for row in rows if row["archived_at"]])
            for name in ("archived_at", "restored_at"):
                column = _COLUMNS[name]
                later = bindparam("later", type_=column.type)
                statement = (
                    update(schema.archive)
                    .where(
                        _COLUMNS.scope == bindparam("in_scope"),
                        _COLUMNS.statement == bindparam("of"),
                        column < later,
                    )
                    .values({name: later})
                )
                asked = [
                    {"in_scope": scope.key, "of": row["statement"], "later": row[name]}
                    for row in rows
                    if row[name]
                ]
                if asked:
                    await connection.execute(statement, asked)

    async def among(self, scope: Scope, statements: Sequence[StatementId]) -> frozenset[StatementId]:
        return frozenset(one.statement for one in await self.moves(scope, statements) if one.archived)

    async def moves(self, scope: Scope, statements: Sequence[StatementId]) -> Sequence[Moved]:
        found: list[Moved] = []
        async with self._database.read(scope) as connection:
            for chunk in in_chunks(id for id in dict.fromkeys(statements) if is_storable(id)):
                asked = {"in_scope": scope.key, "ids": chunk}
                found += map(_moved_of, (await connection.execute(_moves_of(), asked)).mappings())
        return sorted(found, key=lambda one: one.statement)

    async def archived(self, scope: Scope, page: Page) -> Listed[StatementId]:
        query = select(schema.archive).where(_COLUMNS.scope == scope.key, _IS_ARCHIVED)
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, [_COLUMNS.statement], page)
        return Listed([StatementId(row["statement"]) for row in rows.items], rows.after)

    async def scan(self, scope: Scope, page: Page) -> Listed[Moved]:
        query = select(schema.archive).where(_COLUMNS.scope == scope.key)
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, [_COLUMNS.statement], page)
        return Listed([_moved_of(row) for row in rows.items], rows.after)

    async def latest(self, scope: Scope) -> Revision:
        query = select(func.max(_COLUMNS.archived_at), func.max(_COLUMNS.restored_at)).where(
            _COLUMNS.scope == scope.key
        )
        async with self._database.read(scope) as connection:
            archived, restored = (await connection.execute(query)).one()
        return Revision(max(archived or 0, restored or 0))

    async def count(self, scope: Scope) -> int:
        query = select(func.count()).where(and_(_COLUMNS.scope == scope.key, _IS_ARCHIVED))
        async with self._database.read(scope) as connection:
            return int(await connection.scalar(query) or 0)


@cache
def _moves_of() -> Select[Any]:
    these = _COLUMNS.statement.in_(bindparam("ids", expanding=True))
    return select(schema.archive).where(_COLUMNS.scope == bindparam("in_scope"), these)


def _latest(moved: Iterable[Moved]) -> Iterable[Moved]:
    """One of each statement, with its latest revisions."""
    found: dict[StatementId, Moved] = {}
    for one in moved:
        known = found.get(one.statement, one)
        found[one.statement] = Moved(
            one.statement,
            max(known.archived_at, one.archived_at),
            max(known.restored_at, one.restored_at),
        )
    return found.values()


def _moved_of(row: Mapping[Any, Any]) -> Moved:
    return Moved(StatementId(row["statement"]), Revision(row["archived_at"]), Revision(row["restored_at"]))
