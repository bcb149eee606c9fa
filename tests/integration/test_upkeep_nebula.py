"""A graph moves from SQL to NebulaGraph and back, and is verified there: on graphd's double, or a cluster."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.graph.port import ClosedSpan, Commit
from services.stores.graph.sql import SqlGraphStore
from services.stores.paging import Page
from services.stores.sql.engine import engine_for
from services.upkeep.differences import Kind
from services.upkeep.intake import Into
from services.upkeep.move import Move
from services.upkeep.verify import Verifier
from tests.integration.resolving import World, a_world
from tests.integration.upkeeping import AT_ONCE, a_story, answers, stores_of

GRAPH = frozenset([Into.GRAPH])
_PAGE = Page(1000)


@pytest.fixture(scope="module")
def space(graphd: str) -> Iterator[NebulaSettings]:
    """A space of the module's own, gone at the end."""
    settings = NebulaSettings(addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=4, sessions=4)
    asyncio.run(bootstrap(settings))
    yield settings
    asyncio.run(drop(settings))


@pytest.fixture
async def nebula(space: NebulaSettings) -> AsyncIterator[NebulaGraphStore]:
    store = await NebulaGraphStore.open(space)
    yield store
    await store.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        await a_story(world)
        yield world


async def test_a_graph_moves_there_and_back(world: World, nebula: NebulaGraphStore, tmp_path: Path) -> None:
    source = stores_of(world)
    there = replace(source, graph=nebula)
    before = await answers(source, world.scope)
    await nebula.erase(world.scope)
    await Move(source, there, GRAPH, world.parts.vocabulary, AT_ONCE)(world.scope)
    assert await answers(there, world.scope) == before
    again = await SqlGraphStore.open(engine_for(f"sqlite:///{tmp_path / 'back.db'}"))
    try:
        back = replace(source, graph=again)
        await Move(there, back, GRAPH, world.parts.vocabulary, AT_ONCE)(world.scope)
        assert await answers(back, world.scope) == before
    finally:
        await again.close()


async def test_what_differs_there_is_found(world: World, nebula: NebulaGraphStore) -> None:
    stores = replace(stores_of(world), graph=nebula)
    await nebula.erase(world.scope)
    move = Move(stores_of(world), stores, GRAPH, world.parts.vocabulary, AT_ONCE)
    await move(world.scope)
    verifier = Verifier(stores, world.parts.vocabulary, None, AT_ONCE)
    assert (await verifier.verify(world.scope)).differences == ()
    [one, *_] = (await nebula.scan(world.scope, _PAGE)).items
    records = await nebula.records(world.scope, [one])
    [span] = [span for span in records.spans if span.known_to is None][:1]
    current = await stores.revisions.current(world.scope)
    await nebula.apply(world.scope, Commit(current, closed=[ClosedSpan(span.id, span.statement)]))
    found = await verifier.verify(world.scope)
    assert {difference.kind for difference in found.differences} == {Kind.SPANS_DIFFER}
