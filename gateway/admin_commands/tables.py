"""The gateway's tables in a backup: tenants, keys (hashes), ledger and jobs as of one moment, and back.

Unfinished jobs are kept without their progress: restored, they are done anew from the start, under the same
ids, and charged once.
"""

import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import LargeBinary, Table, func, insert, literal, select, text, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store.clock import DatabaseClock
from gateway.store.schema import LEDGER_SCHEMA, PROGRESS_SCHEMA
from gateway.store.stores import Stores
from gateway.store.tables import artifacts, holds, jobs, outbox, tenants
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.sql.isolation import Across
from services.upkeep.archive import ArchiveIn, ArchiveOut, ArchiveUnknown
from services.upkeep.backup import StoresNotEmpty

PAGE = 500
_BACKUP = Across("backup: every row of every tenant")
_RESTORE = Across("restore: every row of every tenant")

_LEDGER: Sequence[Table] = LEDGER_SCHEMA.metadata.sorted_tables
_PROGRESS = [table for table in PROGRESS_SCHEMA.metadata.sorted_tables if table is not artifacts]
"""Artifacts lie between steps of unfinished jobs."""


def revisions() -> Mapping[str, str]:
    """Of the tables, by component: what a backup can be restored into."""
    return {schema.component: schema.head for schema in (LEDGER_SCHEMA, PROGRESS_SCHEMA)}


@dataclass(frozen=True, slots=True)
class Dumped:
    """The moment that tables were dumped of, and what graphs had published by then, as far as jobs tell."""

    at: Instant
    revisions: Mapping[Scope, Revision]


async def dump(stores: Stores, archive: ArchiveOut) -> Dumped:
    """Writes all rows as of one moment. Blocks no writer."""
    finished: set[str] = set()
    published: dict[Scope, Revision] = {}
    async with stores.ledger_database.read(_BACKUP) as connection:
        # The snapshot begins with the first read, and the clock is read after it: whatever a job in the
        # snapshot published was begun by then, so it is in its graph.
        await connection.execute(select(tenants.c.id).limit(1))
        at = (await connection.execute(select(stores.clock.now()))).scalar_one()
        for table in _LEDGER:
            async for row in _rows(connection, table):
                archive.write(_file(table), _line(table, row))
                if table is jobs and row["finished_at"] is not None:
                    finished.add(row["id"])
                    scope = Scope(TenantId(row["tenant"]), GraphId(row["graph"]))
                    published[scope] = Revision(max(published.get(scope, 0), row["revision"]))
    async with stores.progress_database.read(_BACKUP) as connection:
        for table in _PROGRESS:
            async for row in _rows(connection, table):
                if row["job"] in finished:
                    archive.write(_file(table), _line(table, row))
    archive.close_files()
    return Dumped(Instant(at), published)


async def check_empty(stores: Stores) -> None:
    """Raises StoresNotEmpty naming a table that has rows."""
    for database, tables in ((stores.ledger_database, _LEDGER), (stores.progress_database, _PROGRESS)):
        async with database.read(_RESTORE) as connection:
            for table in tables:
                found = await connection.execute(select(literal(1)).select_from(table).limit(1))
                if found.one_or_none() is not None:
                    raise StoresNotEmpty(f"the {database.component} store has rows in {table.name} already")


def check_revisions(archive: ArchiveIn) -> None:
    """Raises ArchiveUnknown for tables of another version."""
    for component, head in revisions().items():
        was = archive.manifest.revisions.get(component)
        if was != head:
            raise ArchiveUnknown(
                f"the backup's {component} tables are of revision {was}, this version's of {head}; "
                "restore it with the version that made it, then migrate"
            )


async def load(stores: Stores, archive: ArchiveIn) -> None:
    """Writes all rows of a backup into empty tables: progress, then the ledger in one transaction."""
    async with stores.progress_database.write(_RESTORE) as connection:
        for table in _PROGRESS:
            await _insert(connection, table, archive)
    async with stores.ledger_database.write(_RESTORE) as connection:
        for table in _LEDGER:
            await _insert(connection, table, archive)
        await _go_on(connection, stores.clock, archive.manifest.at)


async def _go_on(connection: AsyncConnection, clock: DatabaseClock, at: int) -> None:
    """Hands unfinished jobs over again; their holds have the time left that they had."""
    await connection.execute(update(outbox).values(taken_at=None))
    still_open = holds.c.ended_at.is_(None)
    since = clock.now() - at
    await connection.execute(update(holds).where(still_open).values(expires_at=holds.c.expires_at + since))
    if connection.dialect.name == "postgresql":
        # As long as there are rows to go through.
        await connection.execute(text("SET LOCAL statement_timeout = 0"))
        for table in _LEDGER:
            await _count_on(connection, table)


async def _count_on(connection: AsyncConnection, table: Table) -> None:
    """Has PostgreSQL number new rows after those that brought their numbers along."""
    serial = table.autoincrement_column
    if serial is None or serial.autoincrement is not True:
        return
    latest = (await connection.execute(select(func.max(serial)))).scalar_one()
    # Counted there, not set: a server's role may use a sequence, and not change it.
    query = text(
        "SELECT max(nextval(pg_get_serial_sequence(:table, :column))) FROM generate_series(1, :latest)"
    )
    values = {"table": table.name, "column": serial.name, "latest": latest or 0}
    await connection.execute(query, values)


async def _insert(connection: AsyncConnection, table: Table, archive: ArchiveIn) -> None:
    lines = archive.lines(_file(table))
    while rows := list(islice(_read(table, lines), PAGE)):
        await connection.execute(insert(table), rows)


async def _rows(connection: AsyncConnection, table: Table) -> AsyncIterator[Mapping[str, Any]]:
    """All rows in the order of their keys, a page at a time."""
    key = list(table.primary_key.columns)
    query = select(table).order_by(*key).limit(PAGE)
    page = query
    while rows := (await connection.execute(page)).mappings().all():
        for row in rows:
            yield dict(row)
        last = [literal(rows[-1][column.name], column.type) for column in key]
        page = query.where(tuple_(*key) > tuple_(*last))


def _file(table: Table) -> str:
    return f"gateway/{table.name}.jsonl"


def _line(table: Table, row: Mapping[str, Any]) -> bytes:
    values = dict(row)
    for column in table.columns:
        if isinstance(column.type, LargeBinary) and values[column.name] is not None:
            values[column.name] = base64.b64encode(values[column.name]).decode()
    return json.dumps(values, ensure_ascii=False).encode()


def _read(table: Table, lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        values = json.loads(line)
        for column in table.columns:
            if isinstance(column.type, LargeBinary) and values[column.name] is not None:
                values[column.name] = base64.b64decode(values[column.name])
        yield values
