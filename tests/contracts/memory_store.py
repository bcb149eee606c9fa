"""The memory contract: one suite a protocol. A store's test gives `url`, the URL of a database."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import delete

from services.stores.memory.sql import SqlMemory, schema
from services.stores.sql.database import Database
from services.stores.sql.engine import engine_for
from tests.contracts.memory_base import SCOPE, TWINS
from tests.contracts.memory_deletion import DeletionContract, DocumentsContract, StagingContract
from tests.contracts.memory_erasing import ErasingContract
from tests.contracts.memory_known import KnownContract
from tests.contracts.memory_log import DecisionContract, RevisionContract
from tests.contracts.memory_readings import ReadingContract
from tests.contracts.memory_summaries import SummaryContract
from tests.contracts.memory_text import TextContract, TextIsolationContract
from tests.contracts.memory_voice import VoiceContract

__all__ = [
    "DecisionContract",
    "DeletionContract",
    "DocumentsContract",
    "ErasingContract",
    "KnownContract",
    "MemoryFixtures",
    "ReadingContract",
    "RevisionContract",
    "StagingContract",
    "SummaryContract",
    "TextContract",
    "TextIsolationContract",
    "VoiceContract",
]


class MemoryFixtures:
    """Subclasses give the fixture `url`. Tests may share its database: each leaves its scopes empty."""

    @pytest.fixture
    async def memory(self, url: str) -> AsyncIterator[SqlMemory]:
        memory = await SqlMemory.open(engine_for(url))
        yield memory
        for scope in (SCOPE, *TWINS):
            await memory.erase(scope)
        await memory.close()
        await forget_erasures(url)


async def forget_erasures(url: str) -> None:
    """A scope that was erased knows it for ever; the next test's is a new one."""
    database = Database(engine_for(url), "test")
    for scope in (SCOPE, *TWINS):
        async with database.write(scope) as connection:
            await connection.execute(delete(schema.fences))
    await database.close()
