"""What readers keep of a graph goes whenever upkeep changes rows that no revision tells."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_carrying_pb2 as pb
from services.domain.scope import Scope
from services.stores.errors import StoreUnavailable
from services.stores.graph.port import Commit
from services.stores.graph.sql import SqlGraphStore
from tests.integration.keeping import is_kept, keep, keep_late
from tests.integration.resolving import World, a_world
from tests.integration.test_carrying import elsewhere, exported
from tests.integration.upkeeping import a_story, harm, verify

WIDEN = f"UPDATE graph_statements SET hull_from = {2**63 - 1}, hull_to = 0 WHERE fact LIKE '%Graz%'"


class Lossy(SqlGraphStore):
    """A graph store whose answer to the next commit is lost: it does it, and nobody hears of that."""

    loses = False

    async def apply(self, scope: Scope, commit: Commit) -> None:
        await super().apply(scope, commit)
        if self.loses:
            self.loses = False
            raise StoreUnavailable("graph")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, graph_class=Lossy) as world:
        await a_story(world)
        yield world


async def test_a_repair_lets_it_go_and_a_look_does_not(world: World, tmp_path: Path) -> None:
    harm(tmp_path / "graph.db", WIDEN)
    mark = await keep(world)
    assert (await verify(world)).differences
    assert await is_kept(world)
    assert (await verify(world, repair=True)).left == 0
    assert not await is_kept(world)
    assert not await keep_late(world, mark)
    await keep(world)
    assert not (await verify(world, repair=True)).differences
    assert await is_kept(world), "nothing was mended"


async def test_a_repair_that_a_crash_cut_off_has_let_it_go(world: World, tmp_path: Path) -> None:
    assert isinstance(world.graph, Lossy)
    harm(tmp_path / "graph.db", WIDEN)
    await keep(world)
    world.graph.loses = True
    with pytest.raises(StoreUnavailable):
        await verify(world, repair=True)
    assert not (await verify(world)).differences, "so nobody would come back to it"
    assert not await is_kept(world)


async def test_an_import_lets_it_go_with_every_piece(world: World) -> None:
    begun, pieces, _ = await exported(world, world.scope)
    scope = elsewhere(world.scope)
    for lines in pieces:
        await keep(world, scope)
        request = pb.ImportRequest(
            revision=begun.revision, lines=lines, embedder=begun.embedder, dimension=begun.dimension
        )
        await world.resolver.import_(scope, request)
        assert not await is_kept(world, scope)
    await keep(world, scope)
    await world.resolver.discard_import(scope, pb.DiscardImportRequest())
    assert not await is_kept(world, scope)
    assert await world.memory.rows(scope) == {}
