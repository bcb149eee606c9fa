"""SQL engines: SQLite files and PostgreSQL, set up so that both behave alike.

Neither driver begins a transaction by itself: a connection says how, by the execution option `begins`. On
SQLite those that write begin IMMEDIATE, so that concurrent writers, in other processes too, wait for each
other and never fail half way.
"""

import asyncio
import sqlite3
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiosqlite
from psycopg.pq import TransactionStatus
from sqlalchemy import URL, Connection, ExceptionContext, event, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from services.stores.sql import sqlite_driver
from services.stores.sql.settings import PostgresSettings

BEGINS = "begins"
"""The execution option of a connection: the SQL by which its transactions begin.

On PostgreSQL whose rows they may touch is told with it: one way to the server instead of two.
"""

BUSY_TIMEOUT_MS = 30_000
"""How long a SQLite writer waits for another one: longer than any write of ours takes."""

_WAL_TRIES = 200
_WAL_PAUSE_SECONDS = 0.05


class Synchronous(StrEnum):
    """What a SQLite commit waits for. NORMAL may lose the last commits in a power cut; FULL loses none."""

    NORMAL = "NORMAL"
    FULL = "FULL"


def engine_for(
    url: str,
    postgres: PostgresSettings | None = None,
    *,
    synchronous: Synchronous = Synchronous.NORMAL,
) -> AsyncEngine:
    """The engine of `sqlite:///path`, `sqlite:////path` or `postgresql://…` (any driver suffix is replaced).

    Raises ValueError for any other kind of URL. Opens no connection yet.
    """
    parsed = make_url(url)
    match parsed.get_backend_name():
        case "sqlite" if parsed.database and parsed.database != ":memory:":
            return sqlite_engine(Path(parsed.database), synchronous=synchronous)
        case "postgresql":
            return postgres_engine(parsed, postgres)
        case backend:
            raise ValueError(f"no SQL store for {backend!r} URLs: use sqlite:///file or postgresql://")


def sqlite_engine(
    path: Path, *, synchronous: Synchronous = Synchronous.NORMAL, busy_timeout_ms: int = BUSY_TIMEOUT_MS
) -> AsyncEngine:
    """An engine over a SQLite file, made when first used: WAL, foreign keys on, writers wait."""
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(path)),
        # Its own timeout is the pragma below.
        connect_args={
            "isolation_level": None,
            "timeout": busy_timeout_ms / 1000,
            "async_creator_fn": sqlite_driver.opened,
        },
        hide_parameters=True,  # errors are logged; texts must not be
        pool_size=8,
        max_overflow=0,
        pool_timeout=busy_timeout_ms / 1000,
    )

    def connected(connection: Any, _record: object) -> None:
        connection.run_async(lambda driver: _prepare(driver, synchronous))

    event.listen(engine.sync_engine, "connect", connected)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def postgres_engine(
    url: str | URL,
    settings: PostgresSettings | None = None,
    *,
    options: Mapping[str, str] | None = None,
) -> AsyncEngine:
    """An engine over PostgreSQL through psycopg 3; `options` are further settings of its sessions."""
    settings = settings or PostgresSettings()
    statement_timeout_ms = max(1, round(settings.statement_timeout_seconds * 1000))
    session = {"timezone": "UTC", "statement_timeout": str(statement_timeout_ms), **(options or {})}
    engine = create_async_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        connect_args={
            "autocommit": True,
            "connect_timeout": settings.connect_timeout_seconds,
            "application_name": settings.application_name,
            "options": " ".join(f"-c {name}={value}" for name, value in session.items()),
        },
        hide_parameters=True,
        pool_size=settings.pool_size,
        max_overflow=settings.pool_overflow,
        pool_timeout=settings.pool_wait_seconds,
        pool_recycle=settings.pool_recycle_seconds,
        pool_pre_ping=settings.pool_pre_ping,
    )
    event.listen(engine.sync_engine, "handle_error", _unusable)
    event.listen(engine.sync_engine, "checkout", _idle)
    event.listen(engine.sync_engine, "begin", _begin_postgres)
    return engine


def _idle(adapted: Any, _record: object, _proxy: object) -> None:
    """A connection that was left in a transaction, or busy, is replaced."""
    if adapted.info.transaction_status != TransactionStatus.IDLE:
        raise DisconnectionError


def _begin_postgres(connection: Connection) -> None:
    begins = connection.get_execution_options().get(BEGINS, "BEGIN")
    try:
        connection.exec_driver_sql(begins, execution_options={"no_parameters": True})
    except DBAPIError as error:
        error.statement = "BEGIN"  # errors are logged; who was meant must not be
        raise


def _unusable(error: ExceptionContext) -> None:
    """A connection that fails its ping, in whatever way, is replaced: a call cut off may leave it busy."""
    if error.is_pre_ping:
        error.is_disconnect = True


async def _prepare(driver: aiosqlite.Connection, synchronous: Synchronous) -> None:
    # SQLite answers "locked" at once, without waiting, when two connections turn WAL on together.
    for tries_left in reversed(range(_WAL_TRIES)):
        try:
            await driver.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or not tries_left:
                raise
            await asyncio.sleep(_WAL_PAUSE_SECONDS)
    await driver.execute(f"PRAGMA synchronous={synchronous}")
    await driver.execute("PRAGMA foreign_keys=ON")
    # What is deleted is written over with zeros: an erased text is not left to who reads the file.
    await driver.execute("PRAGMA secure_delete=ON")


def _begin_sqlite(connection: Connection) -> None:
    if begins := connection.get_execution_options().get(BEGINS):
        connection.exec_driver_sql(begins)
        return
    driver: Any = connection.connection.driver_connection
    driver.begins = True
