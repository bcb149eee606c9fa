"""A process of its own that migrates a store, beside others that do the same."""

import asyncio
import sys

from services.stores.sql.engine import engine_for
from services.stores.sql.migrations import Schema, upgrade
from tests.doubles.schemas import SCHEMAS


async def migrate(url: str, schema: Schema) -> str:
    """The revision that it found, or "nothing"."""
    engine = engine_for(url)
    done = await upgrade(engine, schema)
    await engine.dispose()
    return done.before or "nothing"


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(migrate(sys.argv[1], SCHEMAS[sys.argv[2]])))
