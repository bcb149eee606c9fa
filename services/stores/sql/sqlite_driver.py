"""A SQLite connection that goes to its thread once a query, and that may be stopped twice."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import aiosqlite


class OneTrip:
    """A cursor whose query goes to the connection's thread and comes back with all rows.

    aiosqlite's own goes there four times: for the cursor, the query, its rows and the end of the cursor. Each
    time costs as much processor as a small query does.
    """

    arraysize = 1

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> "OneTrip":
        return self

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> "OneTrip":
        await self._connection.run(self._run, sqlite3.Cursor.execute, sql, parameters)
        return self

    async def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> "OneTrip":
        await self._connection.run(self._run, sqlite3.Cursor.executemany, sql, parameters)
        return self

    async def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        self._rows = []

    def _run(self, how: Callable[[sqlite3.Cursor, str, Any], object], sql: str, parameters: Any) -> None:
        """In the connection's thread."""
        cursor = self._connection._conn.cursor()
        try:
            if self._connection.begins:
                self._connection.begins = False
                cursor.execute("BEGIN")
            how(cursor, sql, parameters)
            self.description, self.rowcount = cursor.description, cursor.rowcount
            self.lastrowid = cursor.lastrowid
            self._rows = cursor.fetchall() if cursor.description else []
        finally:
            cursor.close()


class Connection(aiosqlite.Connection):
    """aiosqlite's connection, with cursors of one trip, whose thread is told to stop at most once.

    SQLAlchemy closes the connection of a cancelled call in a task of its own, and stops it besides when the
    call is cancelled again. aiosqlite would queue a second stop to a thread that has gone, and wait for its
    answer for ever: neither that task nor the loop's end would come.
    """

    begins = False
    """That a transaction which only reads begins, with its first query: before that it has seen nothing."""
    _stopped = False

    async def run(self, function: Callable[..., None], *arguments: object) -> None:
        """Calls a function in the thread."""
        await self._execute(function, *arguments)  # type: ignore[no-untyped-call]  # aiosqlite's own

    def cursor(self) -> OneTrip:  # type: ignore[override]  # SQLAlchemy enters it, and asks no more of it
        return OneTrip(self)

    async def commit(self) -> None:
        self.begins = False
        if self.in_transaction:
            await super().commit()

    async def rollback(self) -> None:
        """Also of what comes back to the pool, most often committed."""
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
