"""SQL drivers that answer at once, on the thread that asks: for stories in which one thing follows another.

The way to another thread, or through the event loop, and back is most of what a small statement costs. The
statements and the database are the real ones; only nothing else goes on meanwhile.
"""

import sqlite3
from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar

from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.waiting import wait
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from services.stores.sql import sqlite_driver
from services.stores.sql.engine import engine_for
from services.stores.sql.settings import PostgresSettings

T = TypeVar("T")


def engine_at_once(url: str) -> AsyncEngine:
    """An engine as `engine_for` makes it, of one story at a time."""
    # A ping before each transaction is for servers that come and go.
    engine = engine_for(url, PostgresSettings(pool_pre_ping=False))

    def connecting(_dialect: object, _record: object, _arguments: object, options: dict[str, Any]) -> None:
        options["async_creator_fn"] = _sqlite if "async_creator_fn" in options else PostgresAtOnce.connect

    event.listen(engine.sync_engine, "do_connect", connecting)
    return engine


class SqliteAtOnce(sqlite_driver.Connection):
    """Has no thread."""

    async def _execute(self, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return fn(*args, **kwargs)

    async def _connect(self) -> Self:
        self._connection = self._connector()
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._connect().__await__()

    def stop(self) -> None:
        """There is nothing to stop."""


class PostgresAtOnce(AsyncConnection[Any]):
    """Waits for the server, not for the event loop."""

    async def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:  # noqa: ASYNC109 - psycopg's
        return wait(gen, self.pgconn.socket, interval, timeout)


def _sqlite(database: str, **options: Any) -> SqliteAtOnce:
    return SqliteAtOnce(lambda: sqlite3.connect(database, **options), iter_chunk_size=64)
