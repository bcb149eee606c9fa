"""The laws of time over the whole store, its graph in NebulaGraph."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from tests.integration.resolving import World, a_world
from tests.laws import store_laws as laws


@pytest.fixture
async def world(tmp_path: Path, graphd: str) -> AsyncIterator[World]:
    settings = NebulaSettings(addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=2, sessions=2)
    await bootstrap(settings)
    async with a_world(tmp_path, graph=NebulaGraphStore(settings)) as world:
        yield world
    await drop(settings)


test_the_laws_of_time_hold = laws.laws(10, 2)
