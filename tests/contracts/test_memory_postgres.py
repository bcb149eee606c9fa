"""The memory contract on PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.contracts.memory_store import (
    DecisionContract,
    DeletionContract,
    MemoryFixtures,
    RevisionContract,
    StagingContract,
    TextContract,
    TextIsolationContract,
    VoiceContract,
)
from tests.doubles.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> Iterator[str]:
    """One database for all: `memory` empties the scopes that tests use."""
    with postgres_server.database() as url:
        yield url


class Postgres(MemoryFixtures):
    """Its database is the module's."""


class TestPostgresText(Postgres, TextContract): ...


class TestPostgresDeletion(Postgres, DeletionContract): ...


class TestPostgresStaging(Postgres, StagingContract): ...


class TestPostgresTextIsolation(Postgres, TextIsolationContract): ...


class TestPostgresRevision(Postgres, RevisionContract): ...


class TestPostgresVoice(Postgres, VoiceContract): ...


class TestPostgresDecision(Postgres, DecisionContract): ...
