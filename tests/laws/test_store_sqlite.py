"""The laws of time over the whole store, on SQLite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.doubles.at_once import engine_at_once
from tests.integration.resolving import World, a_world
from tests.laws import store_laws as laws


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, engine=engine_at_once) as world:
        yield world


test_the_laws_of_time_hold = laws.laws()
