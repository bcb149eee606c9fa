"""A reader who keeps a snapshot of a graph, whatever is in it, and looks whether it is still there."""

from services.domain.scope import Scope
from services.stores.memory.snapshots import Mark, Snapshot, SnapshotKind
from tests.integration.resolving import World

FACTS = SnapshotKind.FACTS


async def keep(world: World, scope: Scope | None = None) -> Mark:
    """As a reader does who has read everything just now."""
    of = scope or world.scope
    mark = await world.memory.snapshots.mark(of)
    assert await keep_late(world, mark, of)
    return mark


async def keep_late(world: World, mark: Mark, scope: Scope | None = None) -> bool:
    """As a reader does who began to read at a mark; answers whether it was kept."""
    kept = Snapshot("1", world.clock(), [b"all that is told"])
    return await world.memory.snapshots.keep(scope or world.scope, FACTS, mark, kept)


async def is_kept(world: World, scope: Scope | None = None) -> bool:
    return await world.memory.snapshots.kept(scope or world.scope, FACTS, "1") is not None
