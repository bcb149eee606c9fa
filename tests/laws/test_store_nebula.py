"""The laws of time over the whole store, its graph in NebulaGraph: few examples, its double is slow."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from tests.integration.resolving import World, a_world
from tests.laws import store_laws as laws

MOST = 200


@pytest.fixture
async def world(tmp_path: Path, graphd: str) -> AsyncIterator[World]:
    settings = NebulaSettings(addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=2, sessions=2)
    await bootstrap(settings)
    async with a_world(tmp_path, graph=NebulaGraphStore(settings)) as world:
        yield world
    await drop(settings)


test_a_story_is_as_the_oracle_says = laws.law(laws.a_story_as_the_oracle, 10, MOST)
test_any_order_of_arrival_gives_the_same_spans = laws.law(laws.any_order_of_arrival, 40, MOST)
test_told_and_deleted_is_never_told = laws.law(laws.told_and_deleted, 40, MOST)
test_judged_and_undone_is_never_judged = laws.law(laws.judged_and_undone, 40, MOST)
test_merged_and_split_restores = laws.law(laws.merged_and_split, 40, MOST)
