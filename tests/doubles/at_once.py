"""SQL drivers that answer at once, on the thread that asks: for stories in which one thing follows another.

The way to another thread, or through the event loop, and back is most of what a small statement costs. The
statements and the database are the real ones; only nothing else goes on meanwhile.
"""

import sqlite3
from collections import deque
from collections.abc import Coroutine, Generator
from functools import partial
from typing import Any, Self, TypeVar

import psycopg
from sqlalchemy import event
from sqlalchemy.dialects.postgresql import psycopg as of_postgres
from sqlalchemy.dialects.sqlite import aiosqlite as of_sqlite
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.stores.sql import sqlite_driver
from services.stores.sql.engine import engine_for
from services.stores.sql.settings import PostgresSettings

T = TypeVar("T")


def engine_at_once(url: str) -> AsyncEngine:
    """An engine as `engine_for` makes it, of one story at a time."""
    # A ping before each transaction is for servers that come and go.
    engine = engine_for(url, PostgresSettings(pool_pre_ping=False))

    def connecting(dialect: Dialect, _record: object, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        made = _sqlite if options.pop("async_creator_fn", None) else _postgres
        return made(dialect.dbapi, *given, **options)

    # SQLAlchemy asks for that type when it first connects, and waits for the answer.
    if isinstance(engine.dialect, of_postgres.PGDialectAsync_psycopg):
        engine.dialect.use_native_hstore = False
    event.listen(engine.sync_engine, "do_connect", connecting)
    return _EngineAtOnce(engine.sync_engine)


class _ConnectionAtOnce(AsyncConnection):
    """Executes where it is asked to, and closes there: nobody can cancel that."""

    async def execute(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        return self._proxied.execute(statement, parameters, **options)

    async def exec_driver_sql(
        self, statement: str, parameters: Any = None, execution_options: Any = None
    ) -> Any:
        return self._proxied.exec_driver_sql(statement, parameters, execution_options)

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _EngineAtOnce(AsyncEngine):
    _connection_cls = _ConnectionAtOnce


def now(answer: Coroutine[Any, Any, T]) -> T:
    """What a coroutine answers that waits for nothing."""
    try:
        answer.send(None)
    except StopIteration as answered:
        found: T = answered.value
        return found
    raise AssertionError("it would have waited")


class SqliteAtOnce(sqlite_driver.Connection):
    """Has no thread."""

    async def _execute(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    async def _connect(self) -> Self:
        self._connection = self._connector()
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._connect().__await__()

    def stop(self) -> None:
        """There is nothing to stop."""


class _SqliteCursor(of_sqlite.AsyncAdapt_aiosqlite_cursor):
    __slots__ = ()
    _awaitable_cursor_close = False
    _connection: Any
    _cursor: Any

    def _aenter_cursor(self, cursor: Any) -> Any:
        return cursor

    def execute(self, operation: Any, parameters: Any = None) -> None:
        driver: sqlite3.Connection = self._connection._conn
        self._connection.begin(driver)
        self._cursor._cursor = executed = driver.execute(operation, parameters or ())
        self._rows = deque(executed.fetchall())

    def executemany(self, operation: Any, seq_of_parameters: Any) -> None:
        driver: sqlite3.Connection = self._connection._conn
        self._connection.begin(driver)
        self._cursor._cursor = driver.executemany(operation, seq_of_parameters)

    def close(self) -> None:
        self._rows.clear()


class _SqliteConnection(of_sqlite.AsyncAdapt_aiosqlite_connection):
    __slots__ = ()
    _cursor_cls = _SqliteCursor
    _connection: Any

    def commit(self) -> None:
        now(self._connection.commit())

    def rollback(self) -> None:
        now(self._connection.rollback())


def _sqlite(dbapi: Any, database: str, **options: Any) -> _SqliteConnection:
    connection = SqliteAtOnce(partial(sqlite3.connect, database, **options), iter_chunk_size=64)
    opened: Any = now(connection._connect())
    return _SqliteConnection(dbapi, opened)


class _PostgresConnection(of_postgres.AsyncAdapt_psycopg_connection):
    """A connection that blocks, whose cursors serve as they are: all rows of an answer are there with it."""

    __slots__ = ()
    _connection: Any

    def cursor(self, name: Any = None, /) -> Any:
        assert name is None, "all rows are fetched at once"
        return self._connection.cursor()

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        self._connection.close()

    def terminate(self) -> None:
        self._connection.close()

    def set_autocommit(self, value: Any) -> None:
        self._connection.set_autocommit(value)

    def set_isolation_level(self, value: Any) -> None:
        self._connection.set_isolation_level(value)

    def set_read_only(self, value: Any) -> None:
        self._connection.set_read_only(value)


def _postgres(dbapi: Any, *given: Any, **options: Any) -> Any:
    opened: Any = psycopg.Connection.connect(*given, **options)
    return _PostgresConnection(dbapi, opened)
