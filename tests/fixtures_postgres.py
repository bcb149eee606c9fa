"""Fixtures for SQL: one PostgreSQL server for the whole run, one fresh database a test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.postgres_server import PostgresServer
from tests.machine import in_ci, postgres_programs


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server that is stopped at the end. Where PostgreSQL is absent: a named skip, a failure in CI."""
    programs = postgres_programs()
    if programs is None:
        missing = "PostgreSQL's server programs are not installed (see `make doctor`)"
        if in_ci():
            pytest.fail(missing)
        pytest.skip(missing)
    server = PostgresServer(programs)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database of this test's own."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def sql_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'test.db'}"
    return str(request.getfixturevalue("postgres_url"))
