"""The memory contract on PostgreSQL, under row-level security."""

from collections.abc import Iterator

import pytest

from tests.contracts.memory_store import (
    DecisionContract,
    DeletionContract,
    DocumentsContract,
    ErasingContract,
    KnownContract,
    MemoryFixtures,
    ReadingContract,
    RevisionContract,
    StagingContract,
    SummaryContract,
    TextContract,
    TextIsolationContract,
    VoiceContract,
)
from tests.doubles.postgres_server import PostgresServer, as_server

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """One database for all: `memory` empties the scopes that tests use."""
    with postgres_server.database(migrated_template) as url:
        yield as_server(url)


class Postgres(MemoryFixtures):
    """Its database is the module's."""


class TestPostgresText(Postgres, TextContract): ...


class TestPostgresDeletion(Postgres, DeletionContract): ...


class TestPostgresDocuments(Postgres, DocumentsContract): ...


class TestPostgresErasing(Postgres, ErasingContract): ...


class TestPostgresStaging(Postgres, StagingContract): ...


class TestPostgresKnown(Postgres, KnownContract): ...


class TestPostgresTextIsolation(Postgres, TextIsolationContract): ...


class TestPostgresRevision(Postgres, RevisionContract): ...


class TestPostgresVoice(Postgres, VoiceContract): ...


class TestPostgresReading(Postgres, ReadingContract): ...


class TestPostgresDecision(Postgres, DecisionContract): ...


class TestPostgresSummary(Postgres, SummaryContract): ...
