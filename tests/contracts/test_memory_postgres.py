"""The memory contract on PostgreSQL, under row-level security."""

from collections.abc import Iterator

import psycopg
import pytest

from services.stores.memory.sql.schema import SCHEMA
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
from tests.doubles.postgres_server import PostgresServer, as_server

pytestmark = pytest.mark.postgres

_EMPTY = "; ".join(f"DELETE FROM {table.name}" for table in reversed(SCHEMA.metadata.sorted_tables)).encode()


@pytest.fixture(scope="module")
def owner(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """One database for all, as its owner sees it, whom row-level security does not bind."""
    with postgres_server.database(migrated_template) as url:
        yield url


class Postgres(MemoryFixtures):
    """Its database is the module's, and each test leaves it empty."""

    @pytest.fixture
    def url(self, owner: str) -> Iterator[str]:
        yield as_server(owner)
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute(_EMPTY)


class TestPostgresText(Postgres, TextContract): ...


class TestPostgresDeletion(Postgres, DeletionContract): ...


class TestPostgresDocuments(Postgres, DocumentsContract): ...


class TestPostgresErasing(Postgres, ErasingContract): ...


class TestPostgresFollowing(Postgres, FollowingContract): ...


class TestPostgresSnapshots(Postgres, SnapshotsContract): ...


class TestPostgresStaging(Postgres, StagingContract): ...


class TestPostgresKnown(Postgres, KnownContract): ...


class TestPostgresTextIsolation(Postgres, TextIsolationContract): ...


class TestPostgresRevision(Postgres, RevisionContract): ...


class TestPostgresVoice(Postgres, VoiceContract): ...


class TestPostgresReading(Postgres, ReadingContract): ...


class TestPostgresArchive(Postgres, ArchiveContract): ...


class TestPostgresDecision(Postgres, DecisionContract): ...


class TestPostgresSummary(Postgres, SummaryContract): ...
