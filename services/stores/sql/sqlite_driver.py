"""The SQLite driver: aiosqlite, which asks its thread once a statement, and may be stopped twice."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

import aiosqlite

T = TypeVar("T")


class WholeCursor(aiosqlite.Cursor):
    """A cursor that has executed and fetched every row when it answers.

    SQLAlchemy asks for the cursor, the execution, the rows and the closing one by one, and each is a way
    to the connection's thread and back: a third of what a small statement costs. Here only the execution is.
    """

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._rows: list[Any] = []

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, sql: str, parameters: Any = ()) -> Self:
        def run(driver: sqlite3.Connection) -> tuple[sqlite3.Cursor, list[Any]]:
            self._connection.begin(driver)
            cursor = driver.execute(sql, parameters)
            return cursor, cursor.fetchall()

        self._cursor, self._rows = await self._connection.ask(run)
        return self

    async def executemany(self, sql: str, parameters: Any) -> Self:
        def run(driver: sqlite3.Connection) -> sqlite3.Cursor:
            self._connection.begin(driver)
            return driver.executemany(sql, parameters)

        self._cursor = await self._connection.ask(run)
        return self

    async def fetchall(self) -> list[Any]:
        return self._rows

    async def close(self) -> None:
        self._rows = []


class Connection(aiosqlite.Connection):
    """aiosqlite's connection, whose thread is told to stop at most once.

    SQLAlchemy closes the connection of a cancelled call in a task of its own, and stops it besides when the
    call is cancelled again. aiosqlite would queue a second stop to a thread that has gone, and wait for its
    answer for ever: neither that task nor the loop's end would come.
    """

    begins = False
    """That a transaction which only reads begins, with its first query: before that it has seen nothing."""
    _stopped = False

    def cursor(self) -> WholeCursor:  # type: ignore[override]  # aiosqlite's is awaited or entered; this is entered
        return WholeCursor(self)

    async def ask(self, what: Callable[[sqlite3.Connection], T]) -> T:
        """What a function of the connection answers on its thread."""
        return cast("T", await self._execute(what, self._conn))  # type: ignore[no-untyped-call]  # aiosqlite's

    def begin(self, driver: sqlite3.Connection) -> None:
        if self.begins:
            self.begins = False
            driver.execute("BEGIN")

    async def commit(self) -> None:
        self.begins = False
        if self.in_transaction:
            await super().commit()

    async def rollback(self) -> None:
        """The pool asks for it whenever a connection comes back, most often after a commit."""
        self.begins = False
        if self.in_transaction:
            await super().rollback()

    def stop(self) -> asyncio.Future[Any] | None:
        if self._stopped:
            return None
        self._stopped = True
        return super().stop()


def opened(database: str, **options: Any) -> Connection:
    """A connection to be awaited, as `aiosqlite.connect` makes it; `options` are those of sqlite3.connect."""
    connection = Connection(lambda: sqlite3.connect(database, **options), iter_chunk_size=64)
    connection._thread.daemon = True  # as SQLAlchemy sets it on those that it makes
    return connection
