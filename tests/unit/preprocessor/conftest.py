"""A bench for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.stores.memory.sql import SqlMemory
from services.stores.sql.engine import sqlite_engine
from tests.doubles.sqlite_files import laid
from tests.unit.preprocessor.bench import Bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    memory = await SqlMemory.open(sqlite_engine(laid(tmp_path / "memory.db")))
    yield Bench(memory)
    await memory.close()
