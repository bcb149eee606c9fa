"""Fixtures for SQL: one PostgreSQL server for the whole run, one fresh database a test.

The server's own account is a superuser, whom row-level security does not bind. Stores are tried as they run
in production: by a role that owns nothing, on tables that another one made.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from gateway.ingest.durable import migrate_workflows
from services.stores.sql.engine import engine_for
from services.stores.sql.grants import grant
from services.stores.sql.migrations import upgrade
from tests.doubles.postgres_server import SERVER_ROLE, PostgresServer, as_server
from tests.doubles.schemas import SCHEMAS
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


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a database with the tables of all stores, which SERVER_ROLE may use, to be copied."""
    with postgres_server.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {SERVER_ROLE} LOGIN")
        with ThreadPoolExecutor(1) as apart:  # whoever asks for this first may be in a loop of its own
            apart.submit(asyncio.run, _migrate(url)).result()
        migrate_workflows(url, SERVER_ROLE)
        yield url.rpartition("/")[2]


async def _migrate(url: str) -> None:
    engine = engine_for(url)
    for schema in SCHEMAS.values():
        await upgrade(engine, schema)
        await grant(engine, schema, SERVER_ROLE)
    await engine.dispose()


@pytest.fixture
def owner_url(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """A database of this test's own with the tables of all stores, as their owner, a superuser, sees it."""
    with postgres_server.database(migrated_template) as url:
        yield url


@pytest.fixture
def server_url(owner_url: str) -> str:
    """The same database, as servers see it: by a role that row-level security binds."""
    return as_server(owner_url)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def sql_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'test.db'}"
    return str(request.getfixturevalue("postgres_url"))
