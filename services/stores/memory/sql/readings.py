"""Readings in SQL: merges of entities and declarations of predicates, with what revokes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, Table, and_, bindparam, select, update

from services.domain.identity import Merge, MergeKind
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision
from services.domain.predicates import Declared
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.memory.sql import schema, values
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import Key, check_storable, insert_new
from services.stores.storable import is_storable

_MERGES = schema.merges.c
_DECLARATIONS = schema.declarations.c
_REVOKED_AT = schema.reading_revocations.c.revoked_at


def _with_revocations(table: Table) -> Select[Any]:
    revocations = schema.reading_revocations
    same = and_(revocations.c.scope == table.c.scope, revocations.c.record == table.c.id)
    return select(table, _REVOKED_AT).select_from(table.outerjoin(revocations, same))


# Made once, as each resolution asks them.
_SCOPE = bindparam("in_scope", type_=Key)
_ALL_MERGES = _with_revocations(schema.merges).where(_MERGES.scope == _SCOPE)
_OF_PREDICATES = _ALL_MERGES.where(
    _MERGES.kind.in_([MergeKind.SYNONYM.value, MergeKind.DISTINCT.value])
).order_by(_MERGES.recorded_at, _MERGES.id)
_DECLARED = (
    _with_revocations(schema.declarations)
    .where(_DECLARATIONS.scope == _SCOPE)
    .order_by(_DECLARATIONS.recorded_at, _DECLARATIONS.id)
)
_ABOUT = {
    side: _ALL_MERGES.where(_MERGES[side].in_(bindparam("ids", expanding=True)))
    for side in ("entity", "into")
}


class SqlReadingStore:
    """ReadingStore over tables of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def apply(
        self,
        scope: Scope,
        revision: Revision,
        merges: Sequence[Merge],
        declared: Sequence[Declared],
        revoked: Sequence[RecordId],
    ) -> None:
        """See the port. Of several revocations of a record the first stands.

        Raises UnstorableText before writing anything.
        """
        merge_rows = [values.merge_row(scope, merge) for merge in merges]
        declared_rows = [values.declared_row(scope, one) for one in declared]
        revocations = [
            {"scope": scope.key, "record": record, "revoked_at": revision}
            for record in dict.fromkeys(revoked)
        ]
        check_storable([*merge_rows, *declared_rows, *revocations])
        async with self._database.write(scope) as connection:
            await insert_new(connection, schema.merges, merge_rows)
            await insert_new(connection, schema.declarations, declared_rows)
            await insert_new(connection, schema.reading_revocations, revocations)

    async def merges(self, scope: Scope, entities: Sequence[EntityId]) -> Sequence[Merge]:
        found: dict[str, Mapping[str, Any]] = {}
        async with self._database.read(scope) as connection:
            for chunk in in_chunks(id for id in entities if is_storable(id)):
                asked = {"in_scope": scope.key, "ids": chunk}
                for query in _ABOUT.values():
                    rows = (await connection.execute(query, asked)).mappings()
                    found |= {row["id"]: dict(row) for row in rows}
        ordered = sorted(found.values(), key=lambda row: (row["recorded_at"], row["id"]))
        return [values.merge_of(row) for row in ordered]

    async def of_episode(self, scope: Scope, episode: EpisodeId) -> Sequence[Merge]:
        if not is_storable(episode):
            return []
        query = _with_revocations(schema.merges).where(_MERGES.scope == scope.key, _MERGES.episode == episode)
        query = query.order_by(_MERGES.recorded_at, _MERGES.id)
        async with self._database.read(scope) as connection:
            return [values.merge_of(dict(row)) for row in (await connection.execute(query)).mappings()]

    async def list_merges(self, scope: Scope, page: Page) -> Listed[Merge]:
        query = _with_revocations(schema.merges).where(_MERGES.scope == scope.key)
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, [_MERGES.recorded_at, _MERGES.id], page)
        return Listed([values.merge_of(row) for row in rows.items], rows.after)

    async def predicate_merges(self, scope: Scope) -> Sequence[Merge]:
        async with self._database.read(scope) as connection:
            rows = await connection.execute(_OF_PREDICATES, {"in_scope": scope.key})
            return [values.merge_of(dict(row)) for row in rows.mappings()]

    async def declared(self, scope: Scope) -> Sequence[Declared]:
        async with self._database.read(scope) as connection:
            rows = await connection.execute(_DECLARED, {"in_scope": scope.key})
            return [values.declared_of(dict(row)) for row in rows.mappings()]

    async def forget_text(self, scope: Scope, merges: Sequence[RecordId]) -> None:
        async with self._database.write(scope) as connection:
            for chunk in in_chunks(id for id in merges if is_storable(id)):
                these = and_(_MERGES.scope == scope.key, _MERGES.id.in_(chunk))
                await connection.execute(update(schema.merges).where(these).values(why=""))
