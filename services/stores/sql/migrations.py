"""Migrations of one store: its database is brought to this version, checked, or told what would be done.

Every store has a linear history of its own (a folder of Alembic revisions) and a table that names the
revision, so that stores may share a database or not (docs/adr/0010-migrations.md). A revision has
`upgrade(op)` and `downgrade(op)`; the first one's `metadata` are the tables as they were before revisions.
"""

import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, MigrationStep
from alembic.script import ScriptDirectory
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy import Connection, MetaData, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.stores.errors import OwnerNeeded, SchemaAhead, SchemaBehind, SchemaDiffers, TablesInUse
from services.stores.sql.database import Database
from services.stores.sql.isolation import Nobody, warn_unless_bound
from services.stores.sql.settings import MigrateAtStart

HEAD = "head"
BASE = "base"


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a store (`component`) as this version wants them, and the folder of its revisions."""

    component: str
    metadata: MetaData
    folder: Path
    lock_timeout_seconds: float = 10.0
    """How long a migration on PostgreSQL waits for a table that somebody uses."""

    @property
    def version_table(self) -> str:
        return f"palimpsest_{self.component}_version"

    @property
    def head(self) -> str:
        """The revision of this version."""
        head = _revisions(self.folder).get_current_head()
        assert head is not None, "a history has a first revision"
        return head

    def revisions(self) -> Sequence[str]:
        """All revisions, the first one first."""
        return [script.revision for script in _revisions(self.folder).walk_revisions()][::-1]


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration found and left: revisions, "" for none. `adopted`: the tables were there without."""

    component: str
    before: str
    after: str
    adopted: bool = False


@dataclass(frozen=True, slots=True)
class _State:
    revision: str
    adoptable: bool


def migrates(policy: MigrateAtStart, engine: AsyncEngine) -> bool:
    """Whether a server may migrate this database when it starts."""
    return policy == "always" or (policy == "embedded" and engine.dialect.name == "sqlite")


async def open_schema(engine: AsyncEngine, schema: Schema, *, migrate: bool) -> None:
    """Sees to it that a store is of this version; `migrate` brings it there. Safe from many at once.

    Raises SchemaBehind (where it may not migrate), SchemaAhead, SchemaDiffers, StoreUnavailable; migrating
    also what `upgrade` raises.
    """
    async with Database(engine, schema.component).read(Nobody()) as connection:
        await warn_unless_bound(connection, schema.component)
        state = await connection.run_sync(_state, schema)
    if state.revision == schema.head:
        return
    if not migrate:
        raise SchemaBehind(schema.component, state.revision, schema.head)
    await upgrade(engine, schema)


async def upgrade(engine: AsyncEngine, schema: Schema, to: str = HEAD) -> Migrated:
    """Brings a store to a revision, in one transaction; a second process waits, and finds it done.

    Tables of the time before revisions are adopted as they are. Idempotent. Raises SchemaAhead,
    SchemaDiffers, OwnerNeeded, TablesInUse, StoreUnavailable.
    """
    async with Database(engine, schema.component).write(Nobody()) as connection:
        with told_why(schema.component):
            await take_turn(connection, schema)
            return await connection.run_sync(_upgrade, schema, to)


async def downgrade(engine: AsyncEngine, schema: Schema, to: str) -> Migrated:
    """Takes a store back to a revision, or to nothing (BASE); what only later ones can hold is lost.

    Raises as `upgrade` does.
    """
    async with Database(engine, schema.component).write(Nobody()) as connection:
        with told_why(schema.component):
            await take_turn(connection, schema)
            return await connection.run_sync(_downgrade, schema, to)


@contextmanager
def told_why(component: str) -> Iterator[None]:
    """Raises OwnerNeeded or TablesInUse for what PostgreSQL says; other errors pass."""
    try:
        yield
    except DBAPIError as error:
        match getattr(error.orig, "sqlstate", None):
            case "42501":  # insufficient_privilege
                raise OwnerNeeded(component) from error
            case "55P03":  # lock_not_available
                raise TablesInUse(component) from error
            case _:
                raise


async def upgrade_sql(engine: AsyncEngine, schema: Schema) -> str:
    """The SQL that `upgrade` would send now; "" when there is nothing to do. Changes nothing."""
    async with Database(engine, schema.component).read(Nobody()) as connection:
        state = await connection.run_sync(_state, schema)
    if state.revision == schema.head:
        return ""
    told = io.StringIO()
    context = MigrationContext.configure(
        dialect=engine.sync_engine.dialect,
        opts=_options(
            schema,
            fn=lambda _heads, _context: _steps_up(schema, state, HEAD),
            as_sql=True,
            output_buffer=told,
            starting_rev=state.revision or None,
            script=_revisions(schema.folder),
        ),
    )
    with context.begin_transaction():
        context.run_migrations(op=Operations(context))
    return told.getvalue().strip() + "\n"


async def take_turn(connection: AsyncConnection, schema: Schema) -> None:
    """Waits until nobody else migrates this store, until the end of the caller's transaction, which writes.

    On SQLite the transaction itself is the lock: it begins IMMEDIATE.
    """
    if connection.dialect.name != "postgresql":
        return
    # Whoever waits for its turn waits as long as the other one's migration takes.
    await connection.execute(text("SET LOCAL statement_timeout = 0"))
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _lock_key(schema)})
    # A change of a table that waits behind a long query would make all later queries wait behind itself.
    milliseconds = max(1, round(schema.lock_timeout_seconds * 1000))
    await connection.execute(text(f"SET LOCAL lock_timeout = {milliseconds}"))


def _lock_key(schema: Schema) -> int:
    return zlib.crc32(schema.version_table.encode())


def _upgrade(connection: Connection, schema: Schema, to: str) -> Migrated:
    state = _state(connection, schema)
    return _run(connection, schema, state, _steps_up(schema, state, to))


def _downgrade(connection: Connection, schema: Schema, to: str) -> Migrated:
    state = _state(connection, schema)
    steps = _revisions(schema.folder)._downgrade_revs(to, state.revision or BASE)
    return _run(connection, schema, state, [*steps])


def _steps_up(schema: Schema, state: _State, to: str) -> list[MigrationStep]:
    revisions = _revisions(schema.folder)
    if not state.adoptable:
        return [*revisions._upgrade_revs(to, state.revision or BASE)]
    first = schema.revisions()[0]
    adopt = revisions._stamp_revs(first, ())
    return [*adopt, *revisions._upgrade_revs(to, first)]


def _run(connection: Connection, schema: Schema, state: _State, steps: list[MigrationStep]) -> Migrated:
    context = MigrationContext.configure(connection, opts=_options(schema, fn=lambda _heads, _context: steps))
    context.run_migrations(op=Operations(context))
    heads = context.get_current_heads()
    return Migrated(schema.component, state.revision, heads[0] if heads else "", state.adoptable)


def _state(connection: Connection, schema: Schema) -> _State:
    """Raises SchemaAhead, SchemaDiffers."""
    context = MigrationContext.configure(connection, opts=_options(schema))
    heads = context.get_current_heads()
    if heads:
        try:
            _revisions(schema.folder).get_revision(heads[0])
        except (CommandError, ResolutionError) as error:
            raise SchemaAhead(schema.component, heads[0], schema.head) from error
        return _State(heads[0], adoptable=False)
    first: MetaData = _revisions(schema.folder).get_revision(schema.revisions()[0]).module.metadata
    there = set(inspect(connection).get_table_names()) & set(first.tables)
    if there and (differing := _differing(connection, first, there)):
        raise SchemaDiffers(schema.component, differing)
    return _State("", adoptable=bool(there))


def _differing(connection: Connection, metadata: MetaData, there: set[str]) -> list[str]:
    """Tables that are missing, and columns, as `table.column`, that one side alone has."""
    inspector = inspect(connection)
    found = [
        f"{table.name}.{column}"
        for table in metadata.sorted_tables
        if table.name in there
        for column in {one["name"] for one in inspector.get_columns(table.name)} ^ set(table.columns.keys())
    ]
    return sorted([*found, *(set(metadata.tables) - there)])


def _options(schema: Schema, **more: Any) -> dict[str, Any]:
    # Alembic takes SQLite for a database that can't take back DDL; with our drivers' settings it can.
    return {"version_table": schema.version_table, "transactional_ddl": True, **more}


@cache
def _revisions(folder: Path) -> ScriptDirectory:
    return ScriptDirectory(str(folder), version_locations=[str(folder)])
