"""What readers keep of a graph goes whenever upkeep changes rows that no revision tells."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_carrying_pb2 as pb
from services.domain.scope import Scope
from services.stores.errors import StoreUnavailable
from services.stores.graph.port import Commit
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.snapshots import Snapshot, SnapshotKind
from tests.integration.resolving import World, a_world
from tests.integration.test_carrying import elsewhere, exported
from tests.integration.upkeeping import a_story, harm, verify

FACTS = SnapshotKind.FACTS
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


async def keep(world: World, scope: Scope) -> None:
    mark = await world.memory.snapshots.mark(scope)
    kept = Snapshot("1", world.clock(), [b"all that is told"])
    assert await world.memory.snapshots.keep(scope, FACTS, mark, kept)


async def is_kept(world: World, scope: Scope) -> bool:
    return await world.memory.snapshots.kept(scope, FACTS, "1") is not None


async def test_a_repair_lets_it_go_and_a_look_does_not(world: World, tmp_path: Path) -> None:
    harm(tmp_path / "graph.db", WIDEN)
    await keep(world, world.scope)
    mark = await world.memory.snapshots.mark(world.scope)
    assert (await verify(world)).differences
    assert await is_kept(world, world.scope)
    assert (await verify(world, repair=True)).left == 0
    assert not await is_kept(world, world.scope)
    late = Snapshot("1", world.clock(), [b"as it was"])
    assert not await world.memory.snapshots.keep(world.scope, FACTS, mark, late)
    await keep(world, world.scope)
    assert not (await verify(world, repair=True)).differences
    assert await is_kept(world, world.scope), "nothing was mended"


async def test_a_repair_that_a_crash_cut_off_has_let_it_go(world: World, tmp_path: Path) -> None:
    assert isinstance(world.graph, Lossy)
    harm(tmp_path / "graph.db", WIDEN)
    await keep(world, world.scope)
    world.graph.loses = True
    with pytest.raises(StoreUnavailable):
        await verify(world, repair=True)
    assert not (await verify(world)).differences, "so nobody would come back to it"
    assert not await is_kept(world, world.scope)


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
