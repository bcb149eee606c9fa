"""A SQLite connection that may be stopped twice: a call that is cancelled while it closes one does so."""

import asyncio
import sqlite3
from typing import Any

import aiosqlite


class StoppedOnce(aiosqlite.Connection):
    """aiosqlite's connection, whose thread is told to stop at most once.

    SQLAlchemy closes the connection of a cancelled call in a task of its own, and stops it besides when the
    call is cancelled again. aiosqlite would queue a second stop to a thread that has gone, and wait for its
    answer for ever: neither that task nor the loop's end would come.
    """

    _stopped = False

    def stop(self) -> asyncio.Future[Any] | None:
        if self._stopped:
            return None
        self._stopped = True
        return super().stop()


def opened(database: str, **options: Any) -> StoppedOnce:
    """A connection to be awaited, as `aiosqlite.connect` makes it; `options` are those of sqlite3.connect."""
    connection = StoppedOnce(lambda: sqlite3.connect(database, **options), iter_chunk_size=64)
    connection._thread.daemon = True  # as SQLAlchemy sets it on those that it makes
    return connection
