"""The memory contract: one suite a protocol. A store's test gives `url`, the URL of a database."""

from collections.abc import AsyncIterator

import pytest

from services.stores.memory.sql import SqlMemory
from services.stores.sql.engine import engine_for
from tests.contracts.memory_archive import ArchiveContract
from tests.contracts.memory_deletion import DeletionContract, DocumentsContract, StagingContract
from tests.contracts.memory_erasing import ErasingContract
from tests.contracts.memory_following import FollowingContract
from tests.contracts.memory_known import KnownContract
from tests.contracts.memory_log import DecisionContract, RevisionContract
from tests.contracts.memory_readings import ReadingContract
from tests.contracts.memory_snapshots import SnapshotsContract
from tests.contracts.memory_summaries import SummaryContract
from tests.contracts.memory_text import TextContract, TextIsolationContract
from tests.contracts.memory_voice import VoiceContract

__all__ = [
    "ArchiveContract",
    "DecisionContract",
    "DeletionContract",
    "DocumentsContract",
    "ErasingContract",
    "FollowingContract",
    "KnownContract",
    "MemoryFixtures",
    "ReadingContract",
    "RevisionContract",
    "SnapshotsContract",
    "StagingContract",
    "SummaryContract",
    "TextContract",
    "TextIsolationContract",
    "VoiceContract",
]


class MemoryFixtures:
    """Subclasses give the fixture `url`: of an empty database."""

    @pytest.fixture
    async def memory(self, url: str) -> AsyncIterator[SqlMemory]:
        memory = await SqlMemory.open(engine_for(url))
        yield memory
        await memory.close()
