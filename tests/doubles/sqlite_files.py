"""SQLite files as migrations make them, which takes longer than most tests: once a process, then copied."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.ingest.durable import migrate_workflows
from services.stores.sql.engine import sqlite_engine
from services.stores.sql.migrations import upgrade
from tests.doubles.schemas import SCHEMAS

WORKFLOWS = "workflows"
FILES = (*SCHEMAS, WORKFLOWS)
"""The files of a product's data, by the names it gives them (`graph` is graph.db)."""


def laid(file: Path) -> Path:
    """The file, with empty tables of the store that it is named after; unless it is there already."""
    if not file.exists():
        file.write_bytes(_empty(file.stem))
    return file


def laid_url(file: Path) -> str:
    """The URL of `laid`."""
    return f"sqlite:///{laid(file)}"


def lay(folder: Path) -> Path:
    """A folder with the files of all stores."""
    for name in FILES:
        laid(folder / f"{name}.db")
    return folder


@cache
def _empty(store: str) -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{store}.db"
        if store == WORKFLOWS:
            migrate_workflows(f"sqlite:///{file}")
        else:
            with ThreadPoolExecutor(1) as apart:  # whoever asks may be in a loop of its own
                apart.submit(asyncio.run, _migrate(file, store)).result()
        return file.read_bytes()


async def _migrate(file: Path, store: str) -> None:
    engine = sqlite_engine(file)
    await upgrade(engine, SCHEMAS[store])
    await engine.dispose()
