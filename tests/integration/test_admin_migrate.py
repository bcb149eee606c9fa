"""`palimpsest-admin migrate`: what it does, tells and refuses; servers that may not migrate."""

import asyncio
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import typer
from sqlalchemy import make_url
from typer.testing import CliRunner, Result

from gateway import up
from gateway.admin import app
from gateway.credits.audit import audit
from gateway.ingest.durable import DurableEngine, DurableSettings, Run
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from services.runtime.databases import graph_database
from services.runtime.settings import ServiceSettings
from services.stores.errors import SchemaBehind
from services.stores.graph.sql import SqlGraphStore
from services.stores.sql.engine import engine_for
from services.stores.sql.migrations import downgrade, migrates
from tests.doubles.schemas import SCHEMAS
from tests.integration.catalogs import catalog

DATABASES = ("LEDGER", "JOBS", "GRAPH", "MEMORY", "WORKFLOWS")


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA_DIR", "MIGRATE_AT_START", *(f"{one}_URL" for one in DATABASES)):
        monkeypatch.delenv(f"PALIMPSEST_{name}", raising=False)


@pytest.fixture
def on_postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The settings of an installation whose every store is in one database of PostgreSQL."""
    for name in DATABASES:
        monkeypatch.setenv(f"PALIMPSEST_{name}_URL", postgres_url)
    return postgres_url


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["migrate", *arguments])


def lines(verb: str) -> list[str]:
    return [
        f"{component}  {SCHEMAS[component].head}, {verb}"
        for component in ("ledger", "jobs", "graph", "memory")
    ]


def test_every_database_is_migrated_once(tmp_path: Path) -> None:
    first, again = run("--data-dir", str(tmp_path)), run("--data-dir", str(tmp_path))
    assert (first.exit_code, again.exit_code) == (0, 0), first.stderr + again.stderr
    assert first.stdout.splitlines()[:4] == lines("from nothing")
    assert again.stdout.splitlines()[:4] == lines("as it was")
    made = {file.name for file in tmp_path.glob("*.db")}
    assert made == {"ledger.db", "jobs.db", "graph.db", "memory.db", "workflows.db"}


def test_a_dry_run_tells_the_sql_and_changes_nothing(tmp_path: Path) -> None:
    told = run("--data-dir", str(tmp_path), "--dry-run")
    assert told.exit_code == 0, told.stderr
    assert catalog(f"sqlite:///{tmp_path / 'graph.db'}") == frozenset()
    parts = told.stdout.split("-- graph: as follows\n")[1].split("-- memory:")
    with sqlite3.connect(tmp_path / "told.db") as connection:
        connection.executescript(parts[0])
    connection.close()
    assert run("--data-dir", str(tmp_path)).exit_code == 0
    assert catalog(f"sqlite:///{tmp_path / 'told.db'}") == catalog(f"sqlite:///{tmp_path / 'graph.db'}")
    assert run("--data-dir", str(tmp_path), "--dry-run").stdout.count("nothing to do") == 4


def test_tables_of_another_version_are_a_line(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "jobs.db") as connection:
        connection.execute("CREATE TABLE artifacts (id TEXT)")
    connection.close()
    done = run("--data-dir", str(tmp_path))
    assert done.exit_code == 1
    assert done.stderr.startswith("palimpsest-admin: another version of Palimpsest made the jobs store")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.postgres
async def test_a_server_on_postgres_does_not_migrate(on_postgres: str) -> None:
    with pytest.raises(SchemaBehind, match="palimpsest-admin migrate"):
        await open_gateway_stores(GatewaySettings())
    services = ServiceSettings()
    engine, _ = graph_database(services)
    with pytest.raises(SchemaBehind, match="palimpsest-admin migrate"):
        await SqlGraphStore.open(engine, migrate=migrates(services.migrate_at_start, engine))
    await engine.dispose()
    assert catalog(on_postgres) == frozenset()


@pytest.mark.postgres
async def test_a_server_may_be_told_to_migrate(on_postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_MIGRATE_AT_START", "always")
    stores = await open_gateway_stores(GatewaySettings())
    assert await stores.keys.init_operator()
    await stores.close()


@pytest.mark.postgres
def test_up_tells_what_to_do_and_ends(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALIMPSEST_GRAPH_URL", postgres_url)
    program = typer.Typer()
    program.command()(up.command)
    arguments = ["--runtime", "inprocess", "--data-dir", str(tmp_path), "--port", "0"]
    done = CliRunner().invoke(program, arguments)
    assert done.exit_code == 1
    assert "can't start: the graph store is without tables" in done.stderr
    assert "run `palimpsest-admin migrate`" in done.stderr


@dataclass(frozen=True, slots=True)
class Roles:
    """Two roles as production has them; neither is a superuser, one owns the database at `url`."""

    owner: str
    server: str
    url: str

    def url_of(self, role: str) -> str:
        return self.url.replace("//palimpsest@", f"//{role}@")


@pytest.fixture
def roles(on_postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Roles]:
    database = make_url(on_postgres).database
    roles = Roles(f"owner_{database}", f"server_{database}", on_postgres)
    with psycopg.connect(on_postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {roles.owner} LOGIN".encode())
        connection.execute(f"CREATE ROLE {roles.server} LOGIN".encode())
        connection.execute(f"ALTER DATABASE {database} OWNER TO {roles.owner}".encode())
        act_as(roles.owner, roles, monkeypatch)
        yield roles
        connection.execute(f"REASSIGN OWNED BY {roles.owner} TO palimpsest".encode())
        for role in (roles.owner, roles.server):
            connection.execute(f"DROP OWNED BY {role}".encode())
            connection.execute(f"DROP ROLE {role}".encode())


def act_as(role: str, roles: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DATABASES:
        monkeypatch.setenv(f"PALIMPSEST_{name}_URL", roles.url_of(role))


@pytest.mark.postgres
def test_the_role_of_servers_may_use_tables_and_change_none(
    roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = run("--app-role", roles.server, "--dry-run")
    assert f'GRANT SELECT, INSERT, UPDATE, DELETE ON graph_spans TO "{roles.server}"' in told.stdout
    for verb in ("from nothing", "as it was"):
        done = run("--app-role", roles.server)
        assert done.exit_code == 0, done.stderr
        assert done.stdout.splitlines()[:4] == lines(verb)
    act_as(roles.server, roles, monkeypatch)
    with psycopg.connect(roles.url_of(roles.server), autocommit=True) as server:
        server.execute("INSERT INTO price_tables (version, prices, created_at) VALUES ('1', '', 0)")
        server.execute("SELECT version_num FROM palimpsest_ledger_version")
        for refused in (
            "DROP TABLE graph_spans",
            "ALTER TABLE graph_spans DISABLE ROW LEVEL SECURITY",
            "TRUNCATE graph_spans",
            "CREATE TABLE mine (id int)",
            "UPDATE palimpsest_graph_version SET version_num = '0'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                server.execute(refused.encode())
    asyncio.run(_serve())


@pytest.mark.postgres
def test_a_migration_by_the_wrong_role_is_a_line(roles: Roles, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = run("--app-role", "nobody at all")
    assert (nobody.exit_code, nobody.stderr) == (
        1,
        "palimpsest-admin: the ledger store's database has no role 'nobody at all'\n",
    )
    assert run("--app-role", roles.server).exit_code == 0
    owner, schema = engine_for(roles.url_of(roles.owner)), SCHEMAS["ledger"]

    async def go_back() -> None:
        await downgrade(owner, schema, schema.revisions()[0])
        await owner.dispose()

    asyncio.run(go_back())
    act_as(roles.server, roles, monkeypatch)
    done = run()
    assert done.exit_code == 1
    assert done.stderr.startswith("palimpsest-admin: this role may not migrate the ledger store")
    assert len(done.stderr.splitlines()) == 1


async def _serve() -> None:
    """What a server does first: opens its stores, and has its durable engine work."""
    settings = GatewaySettings()
    stores = await open_gateway_stores(settings)
    assert await stores.keys.init_operator()
    assert await audit(stores.ledger_database, stores.clock) == []
    await stores.close()
    await _run_workflow(settings.workflows_url)


async def _run_workflow(url: str) -> None:
    """The durable engine as a server has it: on tables that it may use and not make."""
    engine, done = DurableEngine(DurableSettings(url, "test")), asyncio.Event()

    async def work(_run: Run, _argument: str) -> None:
        done.set()

    engine.register("work", work)
    await engine.launch()
    await engine.start("work", "one", "", turn=1)
    async with asyncio.timeout(60):
        await done.wait()
    await engine.close()
