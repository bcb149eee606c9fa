"""Migrations of every SQL store, on both databases."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, insert, inspect, make_url, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from services.stores.errors import SchemaAhead, SchemaBehind, SchemaDiffers, TablesInUse
from services.stores.sql.database import Database
from services.stores.sql.engine import engine_for
from services.stores.sql.isolation import Across
from services.stores.sql.migrations import (
    BASE,
    Migrated,
    Schema,
    downgrade,
    open_schema,
    take_turn,
    upgrade,
    upgrade_sql,
)
from tests.doubles.schemas import SCHEMAS
from tests.doubles.sql_writer import make_tables
from tests.examples import sampled
from tests.integration.catalogs import catalog
from tests.machine import ROOT

BEFORE = Path(__file__).parent / "before_revisions"


@pytest.fixture(params=sorted(SCHEMAS))
def schema(request: pytest.FixtureRequest) -> Schema:
    return SCHEMAS[request.param]


@pytest.fixture
def other_url(sql_url: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A second empty database, of the kind of `sql_url`."""
    if sql_url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path / 'other.db'}"
    else:
        with request.getfixturevalue("postgres_server").database() as url:
            yield url


@pytest.fixture
async def engine(sql_url: str) -> AsyncIterator[AsyncEngine]:
    engine = engine_for(sql_url)
    yield engine
    await engine.dispose()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[AsyncEngine]:
    engine = engine_for(url)
    yield engine
    await engine.dispose()


async def forget_revision(engine: AsyncEngine, schema: Schema) -> None:
    """Leaves tables as they were made before there were revisions."""
    async with Database(engine, "test").write(Across("test")) as connection:
        await connection.execute(text(f"DROP TABLE {schema.version_table}"))


async def test_an_empty_database_becomes_what_the_metadata_say(
    engine: AsyncEngine, schema: Schema, sql_url: str, other_url: str
) -> None:
    done = await upgrade(engine, schema)
    assert done == Migrated(schema.component, "", schema.head)

    def differences(connection: Connection) -> list[object]:
        options = {"version_table": schema.version_table, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, schema.metadata))

    async with Database(engine, "test").read(Across("test")) as connection:
        assert await connection.run_sync(differences) == []
    # Alembic compares neither collations nor checks: what the databases themselves say.
    async with opened(other_url) as other:
        await make_tables(other, schema.metadata)
    kinds = ("column", "constraint", "index")
    assert catalog(sql_url, *kinds) == catalog(other_url, *kinds)


async def test_each_revision_goes_down_and_up_again(
    engine: AsyncEngine, schema: Schema, sql_url: str
) -> None:
    left = {BASE: catalog(sql_url)}
    revisions = schema.revisions()
    for revision in revisions:
        await upgrade(engine, schema, revision)
        left[revision] = catalog(sql_url)
    assert revisions[-1] == schema.head
    for revision, before in reversed(list(zip(revisions, [BASE, *revisions], strict=False))):
        await downgrade(engine, schema, before)
        assert catalog(sql_url) == left[before], f"down from {revision}"
        await upgrade(engine, schema, revision)
        assert catalog(sql_url) == left[revision], f"up again to {revision}"
        await downgrade(engine, schema, before)
    assert left[BASE] == frozenset()


@pytest.mark.slow
async def test_a_store_of_this_version_is_left_alone(engine: AsyncEngine, schema: Schema) -> None:
    await open_schema(engine, schema, migrate=True)
    assert await upgrade(engine, schema) == Migrated(schema.component, schema.head, schema.head)
    assert await upgrade_sql(engine, schema) == ""
    await open_schema(engine, schema, migrate=False)


async def test_tables_of_the_time_before_revisions_are_adopted(
    engine: AsyncEngine, schema: Schema, sql_url: str, other_url: str
) -> None:
    await upgrade(engine, schema, schema.revisions()[0])
    await forget_revision(engine, schema)
    rows = await fill(engine, schema)
    done = await upgrade(engine, schema)
    assert done == Migrated(schema.component, "", schema.head, adopted=True)
    assert await contents(engine, schema) == rows
    async with opened(other_url) as other:
        await upgrade(other, schema)
    assert catalog(sql_url) == catalog(other_url)


async def test_spans_of_before_precisions_are_kept_without(engine: AsyncEngine) -> None:
    schema = SCHEMAS["graph"]
    spans = schema.metadata.tables["graph_spans"]
    await upgrade(engine, schema, "0002")
    before = (await fill(engine, schema))[spans.name]
    await upgrade(engine, schema)
    async with Database(engine, "test").read(Across("test")) as connection:
        fine = select(spans.c.start_precision, spans.c.end_precision, spans.c.assumed)
        assert {tuple(row) for row in await connection.execute(fine)} == {(None, None, None)}
    assert (await contents(engine, schema))[spans.name] == before


async def test_files_made_by_the_code_before_revisions_are_adopted(schema: Schema, tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    with sqlite3.connect(old) as connection:
        connection.executescript((BEFORE / f"{schema.component}.sql").read_text())
    connection.close()
    async with opened(f"sqlite:///{old}") as engine:
        rows = await fill(engine, schema)
        assert (await upgrade(engine, schema)).adopted
        assert await contents(engine, schema) == rows
    async with opened(f"sqlite:///{new}") as engine:
        await upgrade(engine, schema)
    assert catalog(f"sqlite:///{old}") == catalog(f"sqlite:///{new}")


async def test_tables_of_another_version_are_refused_and_nothing_is_made(
    engine: AsyncEngine, schema: Schema, sql_url: str
) -> None:
    await upgrade(engine, schema, schema.revisions()[0])
    await forget_revision(engine, schema)
    async with Database(engine, "test").write(Across("test")) as connection:
        made = await connection.run_sync(lambda sync: set(inspect(sync).get_table_names()))
        table = next(one.name for one in schema.metadata.sorted_tables if one.name in made)
        await connection.execute(text(f"ALTER TABLE {table} ADD COLUMN seen BIGINT"))
    before = catalog(sql_url)
    for attempt in (open_schema(engine, schema, migrate=True), upgrade_sql(engine, schema)):
        with pytest.raises(SchemaDiffers, match=rf"{schema.component} store \(it differs in {table}\.seen\)"):
            await attempt
    assert catalog(sql_url) == before


async def test_a_store_that_lost_a_table_is_refused(engine: AsyncEngine) -> None:
    schema = SCHEMAS["jobs"]
    await upgrade(engine, schema, schema.revisions()[0])
    await forget_revision(engine, schema)
    async with Database(engine, "test").write(Across("test")) as connection:
        await connection.execute(text("DROP TABLE artifacts"))
    with pytest.raises(SchemaDiffers, match="differs in artifacts"):
        await open_schema(engine, schema, migrate=True)


async def test_a_server_that_may_not_migrate_names_who_does(
    engine: AsyncEngine, schema: Schema, sql_url: str
) -> None:
    with pytest.raises(SchemaBehind, match=r"without tables .* needs .*palimpsest-admin migrate"):
        await open_schema(engine, schema, migrate=False)
    assert catalog(sql_url) == frozenset()
    await upgrade(engine, schema)
    await downgrade(engine, schema, BASE)
    with pytest.raises(SchemaBehind):
        await open_schema(engine, schema, migrate=False)


@pytest.mark.slow
async def test_a_store_of_a_later_version_is_left_alone(engine: AsyncEngine, schema: Schema) -> None:
    await upgrade(engine, schema)
    async with Database(engine, "test").write(Across("test")) as connection:
        await connection.execute(text(f"UPDATE {schema.version_table} SET version_num = '9999'"))
    for attempt in (
        open_schema(engine, schema, migrate=True),
        open_schema(engine, schema, migrate=False),
        upgrade(engine, schema),
        upgrade_sql(engine, schema),
    ):
        with pytest.raises(SchemaAhead, match=rf"{schema.component} store to revision 9999"):
            await attempt


@pytest.mark.parametrize("adopted", sampled([False, True]), ids=["empty", "adopted"])
async def test_the_told_sql_does_what_a_migration_does(
    engine: AsyncEngine, schema: Schema, sql_url: str, other_url: str, adopted: bool
) -> None:
    if adopted:
        await upgrade(engine, schema, schema.revisions()[0])
        await forget_revision(engine, schema)
    before = catalog(sql_url)
    told = await upgrade_sql(engine, schema)
    assert catalog(sql_url) == before
    if sql_url.startswith("sqlite"):
        with sqlite3.connect(make_url(sql_url).database or "") as file:
            file.executescript(told)
        file.close()
    else:
        with psycopg.connect(sql_url, autocommit=True) as server:
            server.execute(told.encode())
    async with opened(other_url) as other:
        await upgrade(other, schema)
    assert catalog(sql_url) == catalog(other_url)
    await open_schema(engine, schema, migrate=False)


async def test_a_migration_waits_for_another_one(engine: AsyncEngine, sql_url: str) -> None:
    schema = SCHEMAS["jobs"]
    async with opened(sql_url) as first:
        async with Database(first, "test").write(Across("test")) as connection:
            await take_turn(connection, schema)
            second = asyncio.create_task(upgrade(engine, schema))
            if connection.dialect.name == "postgresql":
                waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
                while not await connection.scalar(waiting):
                    await asyncio.wait({second}, timeout=0.02)
            # SQLite tells nobody who waits: there it has this long to go wrong.
            await asyncio.wait({second}, timeout=0.2)
            assert not second.done()
            assert catalog(sql_url) == frozenset()
        assert (await second).after == schema.head


@pytest.mark.parametrize("many", sampled([2, 3]))
async def test_processes_that_migrate_at_once_do_it_once(sql_url: str, many: int) -> None:
    command = [sys.executable, "-m", "tests.doubles.migrator", sql_url, "ledger"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        await asyncio.create_subprocess_exec(
            *command,
            cwd=ROOT,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(many)
    ]
    ended = [await process.communicate() for process in processes]
    assert [errors.decode() for _, errors in ended] == [""] * many
    found = sorted(output.decode().strip() for output, _ in ended)
    assert found == [SCHEMAS["ledger"].head] * (many - 1) + ["nothing"]


@pytest.mark.postgres
async def test_a_migration_that_finds_a_table_in_use_changes_nothing(postgres_url: str) -> None:
    schema = SCHEMAS["jobs"]
    async with opened(postgres_url) as engine:
        first = schema.revisions()[0]
        await upgrade(engine, schema, first)
        before = catalog(postgres_url)
        impatient = replace(schema, lock_timeout_seconds=0.1)
        with psycopg.connect(postgres_url) as reader:
            reader.execute("SELECT count(*) FROM artifacts")
            with pytest.raises(TablesInUse, match="jobs store was in use"):
                await upgrade(engine, impatient)
        assert catalog(postgres_url) == before
        assert (await upgrade(engine, impatient)).before == first


async def test_stores_may_share_a_database(engine: AsyncEngine) -> None:
    await asyncio.gather(*(open_schema(engine, schema, migrate=True) for schema in SCHEMAS.values()))
    for schema in SCHEMAS.values():
        await open_schema(engine, schema, migrate=False)
    await downgrade(engine, SCHEMAS["graph"], BASE)
    for component in ("memory", "ledger", "jobs"):
        await open_schema(engine, SCHEMAS[component], migrate=False)


def test_revisions_are_packaged() -> None:
    for schema in SCHEMAS.values():
        inside = [schema.folder, *schema.folder.parents]
        for folder in inside[: inside.index(ROOT)]:
            assert (folder / "__init__.py").is_file(), f"setuptools would leave out {folder}"


async def fill(engine: AsyncEngine, schema: Schema) -> dict[str, list[tuple[object, ...]]]:
    """Two rows in each table that is there, and what is then there."""
    async with Database(engine, "test").write(Across("test")) as connection:
        there = await connection.run_sync(lambda connection: inspect(connection).get_table_names())
        for table in schema.metadata.sorted_tables:
            if table.name not in there:
                continue
            for number in (1, 2):
                values = {
                    column.name: _value(column.type.python_type, number)
                    for column in table.columns
                    if column.name in table.primary_key.columns or not column.nullable
                }
                await connection.execute(insert(table).values(values))
    return await contents(engine, schema)


def _value(kind: type, number: int) -> object:
    return {str: str(number), int: number, float: 0.5, bool: True, bytes: b"\x00" * number}[kind]


async def contents(engine: AsyncEngine, schema: Schema) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each table that is there and has some; without what is NULL, as later columns are."""
    async with Database(engine, "test").read(Across("test")) as connection:
        there = await connection.run_sync(lambda connection: inspect(connection).get_table_names())
        found = {
            table.name: sorted(
                tuple(value for value in row if value is not None)
                for row in await connection.execute(text(f'SELECT * FROM "{table.name}"'))
            )
            for table in schema.metadata.sorted_tables
            if table.name in there
        }
        return {name: rows for name, rows in found.items() if rows}
