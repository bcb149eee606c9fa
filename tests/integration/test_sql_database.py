"""The shared SQL helper on both databases: transactions, writers in several processes, rows, failures."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Column, MetaData, Table, func, select, text
from sqlalchemy.exc import DBAPIError

from services.stores.chunks import in_chunks
from services.stores.errors import StoreUnavailable, UnstorableText, WriteConflict
from services.stores.sql.database import Database
from services.stores.sql.engine import Synchronous, engine_for, postgres_engine, sqlite_engine
from services.stores.sql.isolation import Across
from services.stores.sql.rows import Int64, Key, Prose, insert_new, insert_or_update
from services.stores.sql.settings import PostgresSettings
from services.stores.storable import is_storable
from tests.doubles.sql_writer import counters, make_tables
from tests.examples import sampled
from tests.machine import ROOT

metadata = MetaData()
notes = Table(
    "notes",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("id", Key, primary_key=True),
    Column("text", Prose, nullable=False),
    Column("at", Int64),
)


def note(id: str, words: str = "x", at: int | None = None) -> dict[str, object]:
    return {"scope": "s", "id": id, "text": words, "at": at}


@pytest.fixture
async def database(sql_url: str) -> AsyncIterator[Database]:
    engine = engine_for(sql_url)
    await make_tables(engine, metadata)
    database = Database(engine, "memory")
    yield database
    await database.close()


async def texts(database: Database) -> dict[str, str]:
    async with database.read(Across("test")) as connection:
        rows = await connection.execute(select(notes.c.id, notes.c.text).order_by(notes.c.id))
        return {row.id: row.text for row in rows}


async def test_an_error_takes_back_the_whole_transaction(database: Database) -> None:
    async def fail() -> None:
        async with database.write(Across("test")) as connection:
            await insert_new(connection, notes, [note("a")])
            raise KeyError("ours")

    with pytest.raises(KeyError):
        await fail()
    assert await texts(database) == {}


async def test_a_cancelled_write_leaves_nothing_and_blocks_nobody(database: Database) -> None:
    written = asyncio.Event()

    async def write() -> None:
        async with database.write(Across("test")) as connection:
            await insert_new(connection, notes, [note("a")])
            written.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write())
    await written.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with database.write(Across("test")) as connection:
        await insert_new(connection, notes, [note("b")])
    assert await texts(database) == {"b": "x"}


COUNTED = text(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT max(i) FROM n"
)


@pytest.mark.parametrize("steps", [1, 3, 5])
async def test_a_query_cancelled_again_and_again_leaves_no_task(tmp_path: Path, steps: int) -> None:
    """The second time while its connection is being closed, some steps of the loop after the first."""
    database = Database(sqlite_engine(tmp_path / "notes.db"), "memory")
    before = asyncio.all_tasks()
    counting = asyncio.Event()

    async def read() -> None:
        async with database.read(Across("test")) as connection:
            counting.set()
            await connection.execute(COUNTED)

    task = asyncio.create_task(read())
    await counting.wait()
    await asyncio.sleep(0.01)
    task.cancel()
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(20):
        while left := asyncio.all_tasks() - before:
            await asyncio.wait(left)
    async with database.read(Across("test")) as connection:
        assert await connection.scalar(COUNTED) == 300_000
    await database.close()


async def test_a_read_sees_one_snapshot(database: Database) -> None:
    count = select(func.count()).select_from(notes)
    async with database.read(Across("test")) as reading:
        before = await reading.scalar(count)
        async with database.write(Across("test")) as writing:
            await insert_new(writing, notes, [note("a")])
        assert (before, await reading.scalar(count)) == (0, 0)
    assert len(await texts(database)) == 1


async def test_what_is_there_is_left_or_updated_as_asked(database: Database) -> None:
    async with database.write(Across("test")) as connection:
        await insert_new(connection, notes, [note("a", "old"), note("b", "old", at=1)])
        await insert_new(connection, notes, [note("a", "new"), note("c", "new")])
        await insert_new(connection, notes, [])
        await insert_or_update(connection, notes, [note("c", "newer"), note("d", "newest")], ["text"])
        await insert_or_update(
            connection, notes, [note("a", "!"), note("b", "!")], ["text"], where=notes.c.at.is_not(None)
        )
    assert await texts(database) == {"a": "old", "b": "!", "c": "newer", "d": "newest"}


@pytest.mark.parametrize("bad", ["a\x00b", "\ud83d", "\udc00 x"], ids=["nul", "high", "low"])
async def test_unstorable_text_is_refused_and_never_shown(database: Database, bad: str) -> None:
    with pytest.raises(UnstorableText) as refused:
        async with database.write(Across("test")) as connection:
            await insert_new(connection, notes, [note("a"), note("b", bad)])
    assert str(refused.value) == "text holds NUL or a lone surrogate"
    assert await texts(database) == {}
    assert not is_storable(bad)


async def test_keys_sort_by_code_points(database: Database) -> None:
    keys = ["a", "B", "-b", "Z", "é", "zz", "10", "9", "語", "\U0001f600", "_"]
    async with database.write(Across("test")) as connection:
        await insert_new(connection, notes, [note(key) for key in keys])
    assert list(await texts(database)) == sorted(keys)


async def test_mistakes_of_ours_stay_what_they_are(database: Database) -> None:
    with pytest.raises(DBAPIError):
        async with database.read(Across("test")) as connection:
            await connection.execute(text("SELECT nothing FROM nowhere"))
    with pytest.raises(DBAPIError):
        async with database.write(Across("test")) as connection:
            await insert_new(connection, notes, [{"scope": "s", "id": "a", "text": None, "at": None}])


@pytest.mark.parametrize("many", sampled([2, 3]))
async def test_writers_in_several_processes_wait_for_each_other(sql_url: str, many: int) -> None:
    command = [sys.executable, "-m", "tests.doubles.sql_writer", sql_url, "60", "4"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    writers = [
        await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, env=environment, stderr=asyncio.subprocess.PIPE
        )
        for _ in range(many)
    ]
    errors = [(await writer.communicate())[1].decode() for writer in writers]
    assert errors == [""] * many
    database = Database(engine_for(sql_url), "test")
    async with database.read(Across("test")) as connection:
        assert await connection.scalar(select(counters.c.value)) == 60 * many
    await database.close()


async def test_a_sqlite_file_is_set_up_as_it_must_be(tmp_path: Path) -> None:
    for synchronous, number in ((Synchronous.NORMAL, 1), (Synchronous.FULL, 2)):
        database = Database(sqlite_engine(tmp_path / "a.db", synchronous=synchronous), "ledger")
        async with database.read(Across("test")) as connection:
            pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            found = [(await connection.execute(text(f"PRAGMA {pragma}"))).scalar_one() for pragma in pragmas]
        assert found == ["wal", number, 1, 30_000]
        await database.close()


async def test_a_sqlite_writer_gives_up_after_its_wait(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    holder = Database(sqlite_engine(file), "jobs")
    waiter = Database(sqlite_engine(file, busy_timeout_ms=50), "jobs")
    async with holder.write(Across("test")):
        with pytest.raises(StoreUnavailable, match="jobs"):
            async with waiter.write(Across("test")):
                pytest.fail("two writers at once")
    async with waiter.write(Across("test")):
        pass
    await holder.close()
    await waiter.close()


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, though long enough to be one" * 100)
    for path in (tmp_path, tmp_path / "missing" / "a.db", tmp_path / "text"):
        database = Database(sqlite_engine(path), "graph")
        with pytest.raises(StoreUnavailable) as unavailable:
            async with database.read(Across("test")) as connection:
                await connection.execute(text("SELECT 1"))
        assert str(unavailable.value) == "the graph store can't be reached"
        await database.close()


@pytest.mark.parametrize("url", ["mysql://h/d", "sqlite://", "sqlite:///:memory:"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no SQL store"):
        engine_for(url)


async def test_a_server_that_is_not_there_is_unavailable(unused_tcp_port: int) -> None:
    url = f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/nothing"
    database = Database(postgres_engine(url), "ledger")
    with pytest.raises(StoreUnavailable, match="ledger"):
        async with database.read(Across("test")):
            pytest.fail("connected to nothing")
    await database.close()


@pytest.mark.postgres
async def test_a_lost_connection_is_unavailable_and_made_anew(postgres_url: str) -> None:
    database = Database(postgres_engine(postgres_url), "ledger")

    async def lose() -> None:
        async with database.write(Across("test")) as connection:
            number = await connection.scalar(text("SELECT pg_backend_pid()"))
            with psycopg.connect(postgres_url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [number])
            await connection.execute(text("SELECT 1"))

    with pytest.raises(StoreUnavailable):
        await lose()
    async with database.read(Across("test")) as connection:
        assert await connection.scalar(text("SELECT 1")) == 1
    await database.close()


@pytest.mark.postgres
async def test_a_deadlock_is_a_conflict(postgres_url: str) -> None:
    database = Database(postgres_engine(postgres_url, options={"deadlock_timeout": "100ms"}), "ledger")
    await make_tables(database.engine, metadata)
    async with database.write(Across("test")) as connection:
        await insert_new(connection, notes, [note("a"), note("b")])
    both = asyncio.Barrier(2)

    async def lock(first: str, second: str) -> None:
        async with database.write(Across("test")) as connection:
            for id in (first, second):
                await connection.execute(select(notes).where(notes.c.id == id).with_for_update())
                if id == first:
                    await both.wait()

    results = await asyncio.gather(lock("a", "b"), lock("b", "a"), return_exceptions=True)
    assert [type(result) for result in results if result] == [WriteConflict]
    assert results.count(None) == 1
    await database.close()


@pytest.mark.postgres
async def test_a_statement_that_takes_too_long_is_unavailable(postgres_url: str) -> None:
    database = Database(
        postgres_engine(postgres_url, PostgresSettings(statement_timeout_seconds=0.05)), "ledger"
    )
    with pytest.raises(StoreUnavailable):
        async with database.read(Across("test")) as connection:
            await connection.execute(text("SELECT pg_sleep(20)"))
    await database.close()


@pytest.mark.postgres
async def test_a_read_can_write_nothing_in_postgres(postgres_url: str) -> None:
    database = Database(postgres_engine(postgres_url), "ledger")
    with pytest.raises(DBAPIError):
        async with database.read(Across("test")) as connection:
            await connection.execute(text("CREATE TABLE t (a int)"))
    async with database.write(Across("test")) as connection:
        await connection.execute(text("CREATE TABLE t (a int)"))
    await database.close()


def test_chunks_are_of_distinct_items_in_their_order() -> None:
    assert list(in_chunks([3, 1, 3, 2, 1, 4], size=3)) == [[3, 1, 2], [4]]
    assert list(in_chunks([])) == []
    assert [len(chunk) for chunk in in_chunks(range(1_001))] == [500, 500, 1]
