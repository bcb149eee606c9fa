"""An entity is erased from a graph that lies in NebulaGraph: on graphd's double, or a cluster."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from services.domain.ids import Revision
from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.paging import Page
from tests.builders import on
from tests.integration.resolving import World, a_world
from tests.integration.test_erasing_entities import erase, id_of
from tests.integration.test_resolver import claim
from tests.integration.upkeeping import a_story, verify


@pytest.fixture
async def world(tmp_path: Path, graphd: str) -> AsyncIterator[World]:
    settings = NebulaSettings(addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=2, sessions=2)
    await bootstrap(settings)
    async with a_world(tmp_path, ["ceo", "lives_in"], graph=NebulaGraphStore(settings)) as world:
        yield world
    await drop(settings)


async def test_what_an_entity_had_ended_holds_again_and_nothing_of_it_is_left(world: World) -> None:
    await claim(world, "one", ("Acme", "ceo", "Alice"), "2020-01-01")
    await claim(world, "two", ("Acme", "ceo", "Bob"), "2022-01-01")
    await claim(world, "three", ("Bob", "knows", "Alice"), "2022-02-01")
    before = await world.memory.revisions.current(world.scope)
    bob = await id_of(world, "Bob")
    await erase(world, "Bob")
    assert await world.timeline("acme", "ceo") == [("Alice", on("2020-01-01"), None)]
    assert [row[0] for row in await world.timeline("acme", "ceo", before)] == ["Alice"]
    assert await world.graph.entities(world.scope, [bob]) == []
    assert not (await world.graph.naming(world.scope, [bob], Page(10))).items
    assert "bob" not in {one.key for one in await world.graph.aliases(world.scope, Revision(99))}


@pytest.mark.slow
async def test_upkeep_finds_nothing_wrong_with_a_graph_that_lost_somebody(world: World) -> None:
    await a_story(world)
    before = await world.timeline("ivo", "lives_in")
    await erase(world, "Mara")
    assert (await verify(world)).differences == ()
    assert [row[0] for row in before] == ["Graz", "Linz"]
    assert await world.timeline("ivo", "lives_in") == before
