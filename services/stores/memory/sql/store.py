"""SqlMemory: the memory port's protocols over one database."""

from collections.abc import Mapping
from typing import Self

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.domain.scope import Scope
from services.stores.memory.archive import ArchiveStore
from services.stores.memory.fences import Purged, Rewritten
from services.stores.memory.port import (
    DecisionLog,
    FenceStore,
    ReadingStore,
    RevisionLog,
    StagingStore,
    SummaryStore,
    TextStore,
    VoiceStore,
)
from services.stores.memory.snapshots import SnapshotStore
from services.stores.memory.sql import erasing, schema
from services.stores.memory.sql.archive import SqlArchiveStore
from services.stores.memory.sql.decisions import SqlDecisionLog
from services.stores.memory.sql.dropping import drop_snapshots
from services.stores.memory.sql.fences import SqlFenceStore
from services.stores.memory.sql.readings import SqlReadingStore
from services.stores.memory.sql.revisions import SqlRevisionLog
from services.stores.memory.sql.snapshots import SqlSnapshotStore, count_snapshots
from services.stores.memory.sql.staging import SqlStagingStore
from services.stores.memory.sql.summaries import SqlSummaryStore
from services.stores.memory.sql.text import SqlTextStore
from services.stores.memory.sql.voice import SqlVoiceStore
from services.stores.sql.database import Database
from services.stores.sql.migrations import open_schema

_APART = {schema.fences, schema.snapshots, schema.snapshot_parts, schema.snapshot_drops}
_ERASED = [table for table in reversed(schema.metadata.sorted_tables) if table not in _APART]
"""Row by row; snapshots go as they do whenever text goes. Fences stay, and how often snapshots went: what
was read before is void for ever.
"""


class SqlMemory:
    """The memory port's protocols on SQLite or PostgreSQL. Owns the engine."""

    text: TextStore
    staging: StagingStore
    revisions: RevisionLog
    voice: VoiceStore
    readings: ReadingStore
    archive: ArchiveStore
    decisions: DecisionLog
    fences: FenceStore
    summaries: SummaryStore
    snapshots: SnapshotStore

    def __init__(self, engine: AsyncEngine) -> None:
        self._database = Database(engine, schema.SCHEMA.component)
        self.text = SqlTextStore(self._database)
        self.staging = SqlStagingStore(self._database)
        self.revisions = SqlRevisionLog(self._database)
        self.voice = SqlVoiceStore(self._database)
        self.readings = SqlReadingStore(self._database)
        self.archive = SqlArchiveStore(self._database)
        self.decisions = SqlDecisionLog(self._database)
        self.fences = SqlFenceStore(self._database)
        self.summaries = SqlSummaryStore(self._database)
        self.snapshots = SqlSnapshotStore(self._database)

    @classmethod
    async def open(cls, engine: AsyncEngine, *, migrate: bool = True) -> Self:
        """A store whose tables are of this version; `migrate` makes and migrates them.

        Raises SchemaUnusable.
        """
        await open_schema(engine, schema.SCHEMA, migrate=migrate)
        return cls(engine)

    async def erase(self, scope: Scope) -> None:
        """See ErasableMemory in the port."""
        async with self._database.write(scope) as connection:
            for table in _ERASED:
                await connection.execute(delete(table).where(table.c.scope == scope.key))
            await drop_snapshots(connection, scope)

    async def rows(self, scope: Scope) -> Mapping[str, int]:
        found: dict[str, int] = {}
        async with self._database.read(scope) as connection:
            for table in _ERASED:
                query = select(func.count()).select_from(table).where(table.c.scope == scope.key)
                found[table.name.removeprefix("memory_")] = (await connection.execute(query)).scalar_one()
            found["snapshots"] = await count_snapshots(connection, scope)
        return {kind: count for kind, count in found.items() if count}

    async def purge(self, scope: Scope, purged: Purged) -> None:
        async with self._database.write(scope) as connection:
            await erasing.purge(connection, scope, purged)

    async def rewrite(self, scope: Scope, rewritten: Rewritten) -> None:
        async with self._database.write(scope) as connection:
            await erasing.rewrite(connection, scope, rewritten)

    async def compact(self) -> None:
        await self._database.compact()

    async def close(self) -> None:
        """Closes every connection."""
        await self._database.close()
