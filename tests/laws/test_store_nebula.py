"""The laws of time over the whole store, its graph in NebulaGraph."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from tests.doubles.at_once import engine_at_once
from tests.doubles.graphd import Graphd
from tests.doubles.graphd.at_once import SessionsAtOnce
from tests.integration.resolving import World, a_world
from tests.laws import store_laws as laws


@pytest.fixture
async def world(tmp_path: Path, graphd: str, graphd_inside: Graphd | None) -> AsyncIterator[World]:
    settings = NebulaSettings(addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=2, sessions=2)
    await bootstrap(settings)
    sessions = SessionsAtOnce(settings, graphd_inside) if graphd_inside else None
    graph = NebulaGraphStore(settings, sessions)
    async with a_world(tmp_path, graph=graph, engine=engine_at_once) as world:
        yield world
    await drop(settings)


test_the_laws_of_time_hold = laws.laws()
