"""Row-level security: with raw SQL, as the role of servers, nobody else's rows are seen or written."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from services.domain.ids import JobId
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.graph.sql import schema as graph
from services.stores.memory.sql import schema as memory
from services.stores.sql.database import Database
from services.stores.sql.engine import postgres_engine
from services.stores.sql.isolation import SETTINGS, Across, Nobody, OfJob, OfTenant, Whose, settings_of
from services.stores.sql.migrations import open_schema
from tests.doubles.postgres_server import SERVER_ROLE, PostgresServer, as_server
from tests.doubles.schemas import SCHEMAS

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[tuple[Any, ...]]

MINE, THEIRS, STRANGER = (
    Scope(TenantId(tenant), GraphId("notes")) for tenant in ("acme", "globex", "initech")
)
OF_SCOPE = [table.name for store in (graph, memory) for table in store.metadata.sorted_tables]
OF_TENANT = ["api_keys", "graphs", "requests", "jobs", "accounts", "journal_groups", "journal_entries"]
OF_TENANT += ["holds", "goodwill_days", "calls", "text_days", "ingestion_rules", "erasures", "follow_ups"]
OF_PARENT = {"outbox": "job", "spends": "hold"}
OF_JOB = [table.name for table in SCHEMAS["jobs"].metadata.sorted_tables]
ACROSS = ["executors"]
"""Of the gateways themselves: seen by what works on every tenant's rows."""
OPEN = {"price_tables": "prices are the same for every tenant"}
ALL = sorted(table.name for schema in SCHEMAS.values() for table in schema.metadata.sorted_tables)


@pytest.fixture(scope="module")
def filled(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """Two rows in each table, one of each tenant; a job's id is its hold's, as the product has it.

    Shared: no test leaves a change in it.
    """
    with postgres_server.database(migrated_template) as url:
        with psycopg.connect(url) as connection:
            connection.execute("SET session_replication_role = replica")  # no look at foreign keys
            for schema in SCHEMAS.values():
                for table in schema.metadata.sorted_tables:
                    for scope in (MINE, THEIRS):
                        _insert(connection, table.name, scope)
        yield url


def _insert(connection: Connection, table: str, scope: Scope) -> None:
    found = connection.execute(
        "SELECT column_name, data_type, column_default FROM information_schema.columns "
        "WHERE table_name = %s AND (is_nullable = 'NO' OR column_name IN ('tenant', 'job', 'hold'))",
        [table],
    ).fetchall()
    names = [str(name) for name, _, default in found if default is None]
    kinds = {str(name): str(kind) for name, kind, _ in found}
    values = [_value(name, kinds[name], table, scope) for name in names]
    columns = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join(["%s"] * len(names))
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})".encode(), values)


def _value(name: str, kind: str, table: str, scope: Scope) -> object:
    given = {"scope": scope.key, "tenant": scope.tenant, "job": _job(scope), "hold": _job(scope)}
    if name in given:
        return given[name]
    if name == "id" and kind == "character varying":
        return {"tenants": scope.tenant, "jobs": _job(scope), "holds": _job(scope)}.get(table, scope.tenant)
    if kind in ("bigint", "integer", "smallint"):
        return 1
    return {"boolean": False, "bytea": b"x", "double precision": 0.5}.get(kind, scope.tenant)


def _job(scope: Scope) -> JobId:
    return JobId(f"job-{scope.tenant}")


@contextmanager
def session(url: str, whose: Whose) -> Iterator[Connection]:
    """A transaction that was told whose rows it may touch, and then raw SQL."""
    with psycopg.connect(url) as connection:
        for name, value in settings_of(whose).items():
            connection.execute("SELECT set_config(%s, %s, true)", [name, value])
        yield connection


def refused_by_policy() -> pytest.RaisesExc[psycopg.Error]:
    return pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security policy")


def seen(connection: Connection, table: str) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() or (None,)
    return int(count)


def test_every_table_of_tenants_is_secured_and_binds_its_owner(owner_url: str) -> None:
    assert sorted([*OF_SCOPE, *OF_TENANT, "tenants", *OF_PARENT, *OF_JOB, *ACROSS, *OPEN]) == ALL
    with psycopg.connect(owner_url) as connection:
        secured = (
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class WHERE relname = ANY(%s)"
        )
        found = connection.execute(secured, [ALL]).fetchall()
        assert {name for name, is_secured in found if not is_secured} == set(OPEN)
        role = "SELECT rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = %s"
        assert connection.execute(role, [SERVER_ROLE]).fetchone() == (False, False, False)
        owned = "SELECT count(*) FROM pg_class WHERE relowner = %s::regrole"
        assert connection.execute(owned, [SERVER_ROLE]).fetchone() == (0,)


@pytest.mark.parametrize("table", sorted(set(ALL) - set(OPEN) - set(ACROSS)))
def test_rows_are_seen_by_whose_they_are_alone(filled: str, table: str) -> None:
    of_scope, of_job = table in OF_SCOPE, table in OF_JOB
    job_alone = of_job or table in ("jobs", "holds", *OF_PARENT)
    expected: Mapping[Whose, int] = {
        Nobody(): 0,
        STRANGER: 0,
        OfTenant(STRANGER.tenant): 0,
        OfTenant(TenantId("")): 0,
        OfJob(_job(STRANGER)): 0,
        MINE: 0 if of_job else 1,
        THEIRS: 0 if of_job else 1,
        OfTenant(MINE.tenant): 0 if of_scope or of_job else 1,
        OfJob(_job(MINE)): 1 if job_alone else 0,
        # Memory and graph are no operator's: not even a reason opens them.
        Across("test"): 0 if of_scope else 2,
    }
    for whose, count in expected.items():
        with session(as_server(filled), whose) as connection:
            assert seen(connection, table) == count, whose
    with session(as_server(filled), OfJob(_job(MINE)) if of_job else MINE) as connection:
        row = connection.execute(f"SELECT * FROM {table}".encode()).fetchone()
        assert row is not None
        assert {MINE.key, MINE.tenant, _job(MINE)} & set(map(str, row)), "what is seen is one's own"


@pytest.mark.parametrize("table", sorted(set(ALL) - set(OPEN) - set(ACROSS)))
def test_rows_of_others_are_not_written(filled: str, table: str) -> None:
    server_url = as_server(filled)
    owner = OfJob(_job(MINE)) if table in OF_JOB else MINE
    stranger = OfJob(_job(STRANGER)) if table in OF_JOB else STRANGER
    column = _owner_column(table)
    for whose in (Nobody(), stranger):
        with session(server_url, whose) as connection:
            for statement in (f"UPDATE {table} SET {column} = 'x'", f"DELETE FROM {table}"):
                assert connection.execute(statement.encode()).rowcount == 0
        with session(server_url, whose) as connection, refused_by_policy():
            _insert(connection, table, MINE)
    if table not in NEVER_CHANGED:
        with session(server_url, owner) as connection, refused_by_policy():
            connection.execute(f"UPDATE {table} SET {column} = 'elsewhere'".encode())
    with psycopg.connect(filled) as connection:
        assert seen(connection, table) == 2


NEVER_CHANGED = ("journal_groups", "journal_entries")
"""A trigger refuses changes of one's own rows too, before any policy is asked."""


def _owner_column(table: str) -> str:
    if table in OF_SCOPE:
        return "scope"
    if table in OF_JOB:
        return "job"
    return OF_PARENT.get(table, "id" if table == "tenants" else "tenant")


@pytest.mark.parametrize("table", ACROSS)
def test_rows_of_operators_are_no_tenants(filled: str, table: str) -> None:
    expected: Mapping[Whose, int] = {Nobody(): 0, MINE: 0, OfTenant(MINE.tenant): 0, Across("test"): 2}
    for whose, count in expected.items():
        with session(as_server(filled), whose) as connection:
            assert seen(connection, table) == count, whose
            deleted = connection.execute(f"DELETE FROM {table}".encode()).rowcount
            assert deleted == count
            connection.rollback()
    with session(as_server(filled), MINE) as connection, refused_by_policy():
        _insert(connection, table, STRANGER)


def test_a_connection_that_was_told_nothing_sees_nothing(filled: str) -> None:
    with psycopg.connect(as_server(filled)) as connection:
        assert [table for table in ALL if seen(connection, table)] == list(OPEN)


def test_an_owner_who_is_no_superuser_is_bound_too(filled: str) -> None:
    with psycopg.connect(filled) as connection:
        for table in ("graph_claims", "jobs"):
            connection.execute(f"ALTER TABLE {table} OWNER TO {SERVER_ROLE}".encode())
        connection.execute(f"SET ROLE {SERVER_ROLE}".encode())
        assert (seen(connection, "graph_claims"), seen(connection, "jobs")) == (0, 0)
        connection.rollback()


async def test_a_server_whose_role_is_not_bound_says_so(owner_url: str, server_url: str) -> None:
    for url, said in ((owner_url, ["graph"]), (server_url, [])):
        engine = postgres_engine(url)
        with capture_logs() as logs:
            await open_schema(engine, SCHEMAS["graph"], migrate=False)
        assert [one["component"] for one in logs if "does not bind" in one["event"]] == said
        await engine.dispose()


async def test_nothing_that_was_told_outlives_its_transaction(server_url: str) -> None:
    database = Database(postgres_engine(server_url), "test")
    query = text("SELECT " + ", ".join(f"current_setting('{name}', true)" for name in SETTINGS))
    odd = OfTenant(TenantId("o'\\'; COMMIT; --%s%(x)s\n$$"))
    for whose in (MINE, Across("test"), OfJob(_job(MINE)), odd):
        async with database.read(whose) as connection:
            assert tuple((await connection.execute(query)).one()) == tuple(settings_of(whose).values())
        async with database.engine.connect() as connection:
            assert set((await connection.execute(query)).one()) <= {"", None}
    await database.close()


async def test_names_that_cannot_be_stored_have_no_rows(server_url: str) -> None:
    database = Database(postgres_engine(server_url), "test")
    for name in ("a\x00b", "\ud83d"):
        for whose in (Scope(TenantId(name), GraphId("g")), OfTenant(TenantId(name)), OfJob(JobId(name))):
            async with database.read(whose) as connection:
                assert await connection.scalar(text("SELECT count(*) FROM tenants")) == 0
    await database.close()
