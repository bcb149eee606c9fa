"""A database as stores see it: transactions that read a snapshot, transactions that write."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext

from opentelemetry.trace import SpanKind
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services import metering, tracing
from services.stores.errors import StoreUnavailable
from services.stores.sql.engine import BEGINS
from services.stores.sql.failures import translated
from services.stores.sql.isolation import Nobody, Whose, binding

_SNAPSHOT = {"sqlite": "", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
_WRITING = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "BEGIN ISOLATION LEVEL READ COMMITTED"}
"""How a transaction begins; what only reads SQLite begins by itself, with its first query."""


class Database:
    """An engine under the name of a store (`component` of StoreUnavailable). Owns the engine.

    Usable from one event loop. Not tied to a scope: every query names its own, and every transaction whose
    rows it may touch.
    """

    def __init__(self, engine: AsyncEngine, component: str) -> None:
        self.engine = engine
        self.component = component
        # SQLite has one writer a file. A queue here is fair and cheap; its own wait between processes polls.
        self._turn = asyncio.Lock() if engine.dialect.name == "sqlite" else nullcontext()

    @asynccontextmanager
    async def read(self, whose: Whose) -> AsyncIterator[AsyncConnection]:
        """A transaction in which every query sees the same snapshot; it writes nothing."""
        with self._observed("read"), translated(self.component):
            async with self._transaction(_SNAPSHOT[self.engine.dialect.name], whose) as connection:
                yield connection

    @asynccontextmanager
    async def write(self, whose: Whose) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed at the end, or rolled back when an error leaves it.

        On SQLite writers run one after the other. On PostgreSQL they are READ COMMITTED: what is read
        before it is written needs a lock or a compare-and-set.
        """
        async with self._turn:
            with self._observed("write"), translated(self.component):
                async with self._transaction(_WRITING[self.engine.dialect.name], whose) as connection:
                    yield connection

    @asynccontextmanager
    async def _transaction(self, begins: str, whose: Whose) -> AsyncIterator[AsyncConnection]:
        """SQLite has nothing to be told of whose rows it may touch."""
        if self.engine.dialect.name == "postgresql":
            begins = f"{begins}; {binding(whose)}"
        async with self.engine.connect() as connection:
            if begins:
                assert connection.sync_connection is not None, "it is open"
                connection.sync_connection.execution_options(**{BEGINS: begins})
            async with connection.begin():
                yield connection

    @contextmanager
    def _observed(self, access: str) -> Iterator[None]:
        with (
            tracing.span(f"{access} {self.component}", SpanKind.CLIENT),
            metering.timed(metering.STORE_SECONDS, store=self.component, access=access),
        ):
            yield

    async def compact(self) -> None:
        """Writes a SQLite file anew, without what was deleted from it, and empties its log. Waits.

        Of PostgreSQL that is VACUUM's work, and an operator's. Idempotent. Raises StoreUnavailable.
        """
        if self.engine.dialect.name != "sqlite":
            return
        async with self._turn:
            with translated(self.component):
                async with self.engine.connect() as connection:
                    driver = (await connection.get_raw_connection()).driver_connection
                    assert driver is not None
                    try:
                        await driver.execute_fetchall("VACUUM")
                        await driver.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
                    except sqlite3.OperationalError as error:
                        # Another process writes, or the disk is full.
                        raise StoreUnavailable(self.component) from error

    async def probe(self) -> None:
        """Asks for nothing, to see whether it answers. Raises StoreUnavailable."""
        async with self.read(Nobody()) as connection:
            await connection.execute(select(1))

    async def close(self) -> None:
        """Closes every connection. The database can be used again: connections open anew."""
        await self.engine.dispose()
