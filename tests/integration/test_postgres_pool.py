"""Connections to PostgreSQL: what the settings say holds; a full pool and a lost server are told by type."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from pydantic import ValidationError
from sqlalchemy import text

from gateway.settings import GatewaySettings
from services.domain.scope import TenantId
from services.runtime.settings import ServiceSettings
from services.runtime.status import error_of, status_of
from services.stores.errors import StoreUnavailable
from services.stores.sql.database import Database
from services.stores.sql.engine import postgres_engine
from services.stores.sql.isolation import Across, OfTenant
from services.stores.sql.settings import PostgresSettings
from tests.doubles.postgres_server import PostgresServer
from tests.machine import postgres_programs

pytestmark = pytest.mark.postgres

SMALL = PostgresSettings(pool_size=2, pool_wait_seconds=0.2)


@pytest.fixture
async def small(postgres_url: str) -> AsyncIterator[Database]:
    database = Database(postgres_engine(postgres_url, SMALL), "ledger")
    yield database
    await database.close()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that this test alone stops and starts."""
    programs = postgres_programs()
    assert programs is not None
    server = PostgresServer(programs)
    try:
        server.start()
        yield server
    finally:
        server.stop()


async def backend(database: Database) -> int:
    async with database.read(Across("test")) as connection:
        return int(await connection.scalar(text("SELECT pg_backend_pid()")) or 0)


async def test_a_full_pool_is_unavailable_and_lets_the_next_call_in(small: Database) -> None:
    async with small.read(Across("test")), small.write(Across("test")):
        for transaction in (small.read(Across("test")), small.write(Across("test"))):
            with pytest.raises(StoreUnavailable) as full:
                async with transaction:
                    pytest.fail("a third connection of two")
    status = status_of(error_of(full.value))
    assert (status.code, full.value.component) == (14, "ledger")  # UNAVAILABLE
    assert await backend(small)


async def test_a_call_waits_for_a_connection(postgres_url: str) -> None:
    database = Database(postgres_engine(postgres_url, PostgresSettings(pool_size=1)), "ledger")
    async with database.read(Across("test")):
        waiting = asyncio.create_task(backend(database))
        await asyncio.wait({waiting}, timeout=0.1)
        assert not waiting.done()
    assert await waiting
    await database.close()


async def test_connections_above_the_pool_are_closed_after_use(postgres_url: str) -> None:
    settings = PostgresSettings(pool_size=1, pool_overflow=1, pool_wait_seconds=0.2)
    database = Database(postgres_engine(postgres_url, settings), "ledger")
    async with database.read(Across("test")), database.read(Across("test")):
        with pytest.raises(StoreUnavailable):
            await backend(database)
    count = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    async with database.read(Across("test")) as connection:
        while await connection.scalar(count) != 1:  # the server closes a session a moment after its client
            await connection.execute(text("SELECT pg_stat_clear_snapshot(), pg_sleep(0.01)"))
    await database.close()


async def test_a_session_is_set_up_as_asked(postgres_url: str) -> None:
    settings = PostgresSettings(application_name="pal's gateway 1", statement_timeout_seconds=1.5)
    database = Database(postgres_engine(postgres_url, settings), "ledger")
    async with database.read(Across("test")) as connection:
        names = ("application_name", "statement_timeout", "timezone")
        found = [await connection.scalar(text(f"SHOW {name}")) for name in names]
    assert found == ["pal's gateway 1", "1500ms", "UTC"]
    await database.close()


async def test_a_connection_that_was_left_in_a_transaction_is_replaced(postgres_url: str) -> None:
    database = Database(postgres_engine(postgres_url, PostgresSettings(pool_size=1)), "ledger")
    async with database.read(Across("test")) as connection:
        left = (await connection.get_raw_connection()).driver_connection
        first = await connection.scalar(text("SELECT pg_backend_pid()"))
    assert left is not None
    await left.execute("BEGIN")  # behind the pool's back, as a call that is cut off may
    assert await backend(database) != first
    await database.close()


async def test_whose_rows_were_meant_is_not_told_with_an_error(postgres_url: str) -> None:
    settings = PostgresSettings(pool_size=1, pool_pre_ping=False)
    database = Database(postgres_engine(postgres_url, settings), "ledger")
    whose = OfTenant(TenantId("mallory"))
    gone = await backend(database)
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:
        await other.execute("SELECT pg_terminate_backend(%s, 10000)", [gone])
    with pytest.raises(StoreUnavailable) as unavailable:
        async with database.read(whose):
            pytest.fail("begun on a connection that is gone")
    told = "".join(traceback.format_exception(unavailable.value))
    assert "[SQL: BEGIN]" in told
    assert "mallory" not in told
    await database.close()


async def test_an_old_connection_is_made_anew(postgres_url: str) -> None:
    settings = PostgresSettings(pool_size=1, pool_recycle_seconds=1)
    database = Database(postgres_engine(postgres_url, settings), "ledger")
    first = await backend(database)
    await asyncio.sleep(1.1)
    assert await backend(database) != first
    await database.close()


async def test_a_restarted_server_is_unavailable_to_whom_it_cut_off_only(own_server: PostgresServer) -> None:
    with own_server.database() as url:
        database = Database(postgres_engine(url, SMALL), "ledger")
        async with database.write(Across("test")) as connection:
            await connection.execute(text("CREATE TABLE kept (id int)"))

        async def cut_off() -> None:
            async with database.write(Across("test")) as connection:
                await connection.execute(text("INSERT INTO kept VALUES (1)"))
                await asyncio.to_thread(own_server.halt)
                await connection.execute(text("INSERT INTO kept VALUES (2)"))

        with pytest.raises(StoreUnavailable):
            await cut_off()
        with pytest.raises(StoreUnavailable, match="ledger"):
            await backend(database)
        await asyncio.to_thread(own_server.resume)
        async with database.read(Across("test")) as connection:
            assert await connection.scalar(text("SELECT count(*) FROM kept")) == 0
        await database.close()


async def test_connections_of_before_a_restart_are_not_noticed(own_server: PostgresServer) -> None:
    with own_server.database() as url:
        database = Database(postgres_engine(url, SMALL), "ledger")
        async with database.read(Across("test")), database.read(Across("test")):
            pass
        await asyncio.to_thread(own_server.halt)
        await asyncio.to_thread(own_server.resume)
        assert await backend(database)
        async with database.read(Across("test")), database.read(Across("test")):
            pass
        await database.close()


def test_settings_are_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_POSTGRES__POOL_SIZE", "3")
    monkeypatch.setenv("PALIMPSEST_POSTGRES__POOL_PRE_PING", "false")
    expected = PostgresSettings(pool_size=3, pool_pre_ping=False)
    assert GatewaySettings().postgres == ServiceSettings().postgres == expected
    monkeypatch.setenv("PALIMPSEST_POSTGRES__POOL_SIZE", "0")
    with pytest.raises(ValidationError):
        GatewaySettings()
