"""SqlMemory: the memory port's protocols over one database."""

from typing import Self

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncEngine

from services.domain.scope import Scope
from services.stores.memory.port import (
    DecisionLog,
    ReadingStore,
    RevisionLog,
    StagingStore,
    TextStore,
    VoiceStore,
)
from services.stores.memory.sql import schema
from services.stores.memory.sql.decisions import SqlDecisionLog
from services.stores.memory.sql.readings import SqlReadingStore
from services.stores.memory.sql.revisions import SqlRevisionLog
from services.stores.memory.sql.staging import SqlStagingStore
from services.stores.memory.sql.text import SqlTextStore
from services.stores.memory.sql.voice import SqlVoiceStore
from services.stores.sql.database import Database
from services.stores.sql.migrations import open_schema


class SqlMemory:
    """Text, staged facts, revisions, voice, readings, decisions on SQLite or PostgreSQL. Owns the engine."""

    text: TextStore
    staging: StagingStore
    revisions: RevisionLog
    voice: VoiceStore
    readings: ReadingStore
    decisions: DecisionLog

    def __init__(self, engine: AsyncEngine) -> None:
        self._database = Database(engine, schema.SCHEMA.component)
        self.text = SqlTextStore(self._database)
        self.staging = SqlStagingStore(self._database)
        self.revisions = SqlRevisionLog(self._database)
        self.voice = SqlVoiceStore(self._database)
        self.readings = SqlReadingStore(self._database)
        self.decisions = SqlDecisionLog(self._database)

    @classmethod
    async def open(cls, engine: AsyncEngine, *, migrate: bool = True) -> Self:
        """A store whose tables are of this version; `migrate` makes and migrates them.

        Raises SchemaUnusable.
        """
        await open_schema(engine, schema.SCHEMA, migrate=migrate)
        return cls(engine)

    async def erase(self, scope: Scope) -> None:
        """Removes every row of a scope, in one transaction. Idempotent."""
        async with self._database.write(scope) as connection:
            for table in reversed(schema.metadata.sorted_tables):
                await connection.execute(delete(table).where(table.c.scope == scope.key))

    async def close(self) -> None:
        """Closes every connection."""
        await self._database.close()
