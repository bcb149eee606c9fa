"""A process of its own that adds to one counter, over and over, beside others of its kind."""

import asyncio
import sys

from sqlalchemy import Column, MetaData, Table, select, text, update
from sqlalchemy.ext.asyncio import AsyncEngine

from services.stores.sql.database import Database
from services.stores.sql.engine import engine_for
from services.stores.sql.isolation import Across
from services.stores.sql.rows import Int64, Key, insert_new

metadata = MetaData()
counters = Table(
    "counters", metadata, Column("id", Key, primary_key=True), Column("value", Int64, nullable=False)
)


async def make_tables(engine: AsyncEngine, metadata: MetaData) -> None:
    """Makes tables that have no revisions. Safe from several processes at once."""
    async with Database(engine, "test").write(Across("test")) as connection:
        if engine.dialect.name == "postgresql":
            await connection.execute(text("SELECT pg_advisory_xact_lock(1)"))
        await connection.run_sync(metadata.create_all)


async def add(url: str, times: int, tasks: int) -> None:
    """Adds 1 `times` times, `tasks` at once: reads, then writes, in one transaction each."""
    engine = engine_for(url)
    await make_tables(engine, metadata)
    database = Database(engine, "test")

    async def once() -> None:
        async with database.write(Across("test")) as connection:
            await insert_new(connection, counters, [{"id": "only", "value": 0}])
            locked = select(counters.c.value).where(counters.c.id == "only").with_for_update()
            value = (await connection.execute(locked)).scalar_one()
            await connection.execute(update(counters).values(value=value + 1))

    for _ in range(times // tasks):
        await asyncio.gather(*(once() for _ in range(tasks)))
    await database.close()


if __name__ == "__main__":
    asyncio.run(add(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
