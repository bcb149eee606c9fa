"""The memory contract on SQLite."""

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from services.domain.ids import EntityId, EpisodeId, Revision, SessionId, VoiceId
from services.domain.instants import Instant
from services.domain.memory import VoiceKind
from services.stores.errors import StoreUnavailable
from services.stores.memory.snapshots import SnapshotKind
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from services.stores.sql.engine import sqlite_engine
from tests.contracts.memory_base import SCOPE
from tests.contracts.memory_snapshots import keep
from tests.contracts.memory_store import (
    ArchiveContract,
    DecisionContract,
    DeletionContract,
    DocumentsContract,
    ErasingContract,
    FollowingContract,
    KnownContract,
    MemoryFixtures,
    ReadingContract,
    RevisionContract,
    SnapshotsContract,
    StagingContract,
    SummaryContract,
    TextContract,
    TextIsolationContract,
    VoiceContract,
)
from tests.contracts.memory_text import everything
from tests.doubles.sqlite_files import laid_url


class Sqlite(MemoryFixtures):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return laid_url(tmp_path / "memory.db")


class TestSqliteText(Sqlite, TextContract): ...


class TestSqliteDeletion(Sqlite, DeletionContract): ...


class TestSqliteDocuments(Sqlite, DocumentsContract): ...


class TestSqliteErasing(Sqlite, ErasingContract): ...


class TestSqliteFollowing(Sqlite, FollowingContract): ...


class TestSqliteSnapshots(Sqlite, SnapshotsContract): ...


class TestSqliteStaging(Sqlite, StagingContract): ...


class TestSqliteKnown(Sqlite, KnownContract): ...


class TestSqliteTextIsolation(Sqlite, TextIsolationContract): ...


class TestSqliteRevision(Sqlite, RevisionContract):
    @pytest.mark.slow  # every day on PostgreSQL
    async def test_fifty_writers_in_three_processes_publish_one_revision_each(
        self, memory: SqlMemory, url: str
    ) -> None:
        await super().test_fifty_writers_in_three_processes_publish_one_revision_each(memory, url)


class TestSqliteVoice(Sqlite, VoiceContract): ...


class TestSqliteReading(Sqlite, ReadingContract): ...


class TestSqliteArchive(Sqlite, ArchiveContract): ...


class TestSqliteDecision(Sqlite, DecisionContract): ...


class TestSqliteSummary(Sqlite, SummaryContract): ...


async def test_no_read_scans_a_table(tmp_path: Path) -> None:
    engine = sqlite_engine(tmp_path / "memory.db")
    memory = await SqlMemory.open(engine)
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            asked.append((statement, parameters))

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    try:
        await everything(memory, SCOPE)
        await memory.revisions.current(SCOPE)
        await memory.revisions.entry(SCOPE, "commit")
        await memory.revisions.at(SCOPE, Instant(1))
        await memory.revisions.clocks(SCOPE, [Revision(1)])
        await memory.voice.aspects(SCOPE, [VoiceId("a")])
        await memory.voice.list_aspects(SCOPE, [VoiceKind.GOAL], Revision(1), Page())
        await memory.voice.of_episode(SCOPE, EpisodeId("e"))
        await memory.readings.merges(SCOPE, [EntityId("a"), EntityId("b")])
        await memory.readings.of_episode(SCOPE, EpisodeId("e"))
        await memory.readings.list_merges(SCOPE, Page())
        await memory.readings.declared(SCOPE)
        await memory.decisions.list_decisions(SCOPE, None, Page())
        await memory.decisions.list_decisions(SCOPE, "target", Page())
        await memory.summaries.sessions(SCOPE, [SessionId("s")])
        await memory.summaries.scan_sessions(SCOPE, Page())
        await memory.summaries.citing(SCOPE, ["a"])
        await memory.summaries.labels(SCOPE)
        await memory.summaries.label_vectors(SCOPE)
        await memory.summaries.labelled(SCOPE, ["a"])
        await memory.summaries.persona(SCOPE)
        await memory.summaries.followed(SCOPE)
        await memory.revisions.since(SCOPE, Revision(0), 9)
        await keep(memory, b"x")
        await memory.snapshots.kept(SCOPE, SnapshotKind.TEXTS, "1")
        await memory.rows(SCOPE)
        assert len(asked) > 20
        async with engine.connect() as connection:
            for statement, parameters in asked:
                plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                # What a part of the statement found, or a parameter lists, is read through as it has to be.
                steps = [
                    row.detail for row in plan if not re.match(r"SCAN (anon_\d+|CONSTANT ROW)", row.detail)
                ]
                assert not [step for step in steps if step.startswith("SCAN")], (statement, steps)
                assert not [step for step in steps if step.startswith("SEARCH") and "scope=?" not in step]
    finally:
        await memory.close()


async def test_a_file_that_can_not_be_opened_is_unavailable(tmp_path: Path) -> None:
    memory = SqlMemory(sqlite_engine(tmp_path / "absent" / "memory.db"))
    with pytest.raises(StoreUnavailable, match="memory"):
        await memory.revisions.current(SCOPE)
    await memory.close()
