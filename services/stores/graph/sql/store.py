"""SqlGraphStore: the graph port over SQL tables, each call one transaction."""

from collections.abc import Mapping, Sequence
from typing import Self

from sqlalchemy.ext.asyncio import AsyncEngine

from services.domain.graph import Entity
from services.domain.ids import EntityId, EpisodeId, Revision, StatementId
from services.domain.instants import Interval
from services.domain.scope import Scope
from services.stores.graph.plain import PlainPage
from services.stores.graph.port import (
    NOBODY,
    Alias,
    AsOf,
    Commit,
    Counts,
    EntityFilter,
    Forgetting,
    NodePair,
    Records,
    StatementFilter,
    StatementView,
    Step,
    Together,
)
from services.stores.graph.sql import bulk, entities, erasing, lists, reads, schema, walks, writes
from services.stores.graph.sql.pairs import statements_of_pairs
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.migrations import open_schema
from services.stores.sql.rows import check_storable


class SqlGraphStore:
    """GraphStore on SQLite or PostgreSQL. Owns the engine; a commit is atomic, a read sees one snapshot."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._database = Database(engine, schema.SCHEMA.component)

    @classmethod
    async def open(cls, engine: AsyncEngine, *, migrate: bool = True) -> Self:
        """A store whose tables are of this version; `migrate` makes and migrates them.

        Raises SchemaUnusable.
        """
        await open_schema(engine, schema.SCHEMA, migrate=migrate)
        return cls(engine)

    async def apply(self, scope: Scope, commit: Commit) -> None:
        rows = writes.batch(scope, commit)
        async with self._database.write(scope) as connection:
            await writes.write(connection, scope, commit, rows)

    async def find_entities(
        self, scope: Scope, keys: Sequence[str], known_at: Revision
    ) -> Mapping[str, Sequence[Entity]]:
        async with self._database.read(scope) as connection:
            return await reads.find_entities(connection, scope, keys, known_at)

    async def entities(self, scope: Scope, ids: Sequence[EntityId]) -> Sequence[Entity]:
        async with self._database.read(scope) as connection:
            found = await reads.entities(connection, scope, ids)
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    async def aliases(self, scope: Scope, known_at: Revision) -> Sequence[Alias]:
        async with self._database.read(scope) as connection:
            return await reads.aliases(connection, scope, known_at)

    async def aliases_of(self, scope: Scope, ids: Sequence[EntityId], known_at: Revision) -> Sequence[Alias]:
        async with self._database.read(scope) as connection:
            return await entities.aliases_of(connection, scope, ids, known_at)

    async def list_entities(
        self, scope: Scope, where: EntityFilter, known_at: Revision, page: Page
    ) -> Listed[Entity]:
        async with self._database.read(scope) as connection:
            return await entities.list_entities(connection, scope, where, known_at, page)

    async def degrees(self, scope: Scope, groups: Sequence[Sequence[EntityId]], at: AsOf) -> Sequence[int]:
        async with self._database.read(scope) as connection:
            return await entities.degrees(connection, scope, groups, at)

    async def views(self, scope: Scope, ids: Sequence[StatementId], at: AsOf) -> Sequence[StatementView]:
        async with self._database.read(scope) as connection:
            return await reads.views(connection, scope, ids, at)

    async def records(self, scope: Scope, ids: Sequence[StatementId]) -> Records:
        async with self._database.read(scope) as connection:
            return await reads.records(connection, scope, ids)

    async def slot(self, scope: Scope, subject: EntityId, predicate: EntityId) -> Sequence[StatementId]:
        pair = (subject, predicate)
        return (await self.slots(scope, [pair])).get(pair, [])

    async def slots(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        async with self._database.read(scope) as connection:
            return await statements_of_pairs(connection, scope, schema.statements.c.predicate, pairs)

    async def between(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        async with self._database.read(scope) as connection:
            return await statements_of_pairs(connection, scope, schema.statements.c.object, pairs)

    async def of_predicate(
        self, scope: Scope, predicate: EntityId, target: EntityId | None, page: Page
    ) -> Listed[StatementId]:
        async with self._database.read(scope) as connection:
            return await lists.of_predicate(connection, scope, predicate, target, page)

    async def naming(self, scope: Scope, entities: Sequence[EntityId], page: Page) -> Listed[StatementId]:
        async with self._database.read(scope) as connection:
            return await lists.naming(connection, scope, entities, page)

    async def of_episode(self, scope: Scope, episode: EpisodeId) -> Records:
        async with self._database.read(scope) as connection:
            return await reads.of_episode(connection, scope, episode)

    async def list_statements(
        self, scope: Scope, where: StatementFilter, at: AsOf, page: Page
    ) -> Listed[StatementView]:
        async with self._database.read(scope) as connection:
            return await lists.list_statements(connection, scope, where, at, page)

    async def walk(
        self,
        scope: Scope,
        seeds: Sequence[EntityId],
        at: AsOf,
        max_hops: int,
        per_level: int,
        together: Together = NOBODY,
    ) -> Sequence[Step]:
        async with self._database.read(scope) as connection:
            return await walks.walk(connection, scope, seeds, at, max_hops, per_level, together)

    async def scan(self, scope: Scope, page: Page) -> Listed[StatementId]:
        async with self._database.read(scope) as connection:
            return await lists.scan(connection, scope, page)

    async def scan_plain(self, scope: Scope, page: Page) -> PlainPage:
        """See ScansPlain in services/stores/graph/plain.py."""
        async with self._database.read(scope) as connection:
            return await bulk.scan_plain(connection, scope, page)

    async def counts(self, scope: Scope, known_at: Revision) -> Counts:
        async with self._database.read(scope) as connection:
            return await reads.counts(connection, scope, known_at)

    async def orphans(self, scope: Scope, ids: Sequence[EntityId], known_at: Revision) -> Sequence[EntityId]:
        async with self._database.read(scope) as connection:
            return await reads.orphans(connection, scope, ids, known_at)

    async def forget(self, scope: Scope, forgetting: Forgetting) -> None:
        check_storable({"fact": sentence} for _, sentence in forgetting.retold)
        async with self._database.write(scope) as connection:
            await writes.forget(connection, scope, forgetting)

    async def hulls(self, scope: Scope, ids: Sequence[StatementId]) -> Mapping[StatementId, Interval]:
        """See KeepsHulls in the port."""
        async with self._database.read(scope) as connection:
            return await reads.hulls(connection, scope, ids)

    async def purge(
        self, scope: Scope, statements: Sequence[StatementId], entities: Sequence[EntityId]
    ) -> None:
        async with self._database.write(scope) as connection:
            await erasing.purge(connection, scope, statements, entities)

    async def rows(self, scope: Scope) -> Mapping[str, int]:
        async with self._database.read(scope) as connection:
            return await erasing.rows(connection, scope)

    async def compact(self) -> None:
        """See CompactsFiles in the port."""
        await self._database.compact()

    async def erase(self, scope: Scope) -> None:
        async with self._database.write(scope) as connection:
            await erasing.erase(connection, scope)

    async def close(self) -> None:
        await self._database.close()
