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
from services.stores.sql.engine import WRITES
from services.stores.sql.failures import translated
from services.stores.sql.isolation import Nobody, Whose, bind


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
            async with self.engine.connect() as connection:
                if self.engine.dialect.name == "postgresql":
                    await connection.execution_options(
                        isolation_level="REPEATABLE READ", postgresql_readonly=True
                    )
                async with connection.begin():
                    await bind(connection, whose)
                    yield connection

    @asynccontextmanager
    async def write(self, whose: Whose) -> AsyncIterator[AsyncConnection]:
        """A transaction that is committed at the end, or rolled back when an error leaves it.

        On SQLite writers run one after the other. On PostgreSQL they are READ COMMITTED: what is read
        before it is written needs a lock or a compare-and-set.
        """
        async with self._turn:
            with self._observed("write"), translated(self.component):
                async with self.engine.connect() as connection:
                    await connection.execution_options(**{WRITES: True})
                    async with connection.begin():
                        await bind(connection, whose)
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
