"""Shelves: when an index is loaded, restored, kept, replaced, read anew and let go, by a clock of its own."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import pytest

from services.domain.ids import Revision
from services.domain.scope import Scope
from services.recall.behind import Behind
from services.recall.hot.kept import Kept
from services.recall.revisions import Known
from services.recall.shelf import AGE_SECONDS, IDLE_SECONDS, PAUSE_SECONDS, Shelf
from services.recall.states import State
from services.stores.errors import StoreUnavailable
from services.stores.memory.snapshots import Mark, Snapshot, SnapshotKind
from tests.builders import a_scope

MINE, THEIRS = a_scope("mine"), a_scope("theirs")


def at(revision: int) -> Known:
    return Known(Revision(revision), Revision(revision))


@dataclass
class World:
    """What the indexes of a test read, and what they did. Loads wait until they `may_load`."""

    down: bool = False
    gaps: set[int] = field(default_factory=set)
    """Revisions that no index can be brought forward to."""
    did: list[str] = field(default_factory=list)
    may_load: asyncio.Event = field(default_factory=asyncio.Event)
    loading: asyncio.Event = field(default_factory=asyncio.Event)

    def hold(self) -> None:
        """From now on loads wait."""
        self.may_load.clear()
        self.loading.clear()


class Numbered:
    """An index that holds nothing but its revision."""

    def __init__(self, world: World, size: int) -> None:
        self._world = world
        self.bytes = size
        self.rows = 1
        self.revision = -1

    @property
    def state(self) -> State:
        return {"seen": [self.revision]}

    async def load(self, known: Known) -> None:
        self._world.loading.set()
        await self._world.may_load.wait()
        if self._world.down:
            raise StoreUnavailable("graph")
        self._world.did.append(f"load {known.current}")
        self.revision = known.current

    async def restore(self, state: State) -> None:
        (self.revision,) = state["seen"]
        self._world.did.append(f"restore {self.revision}")

    async def take_over(self, before: Self) -> None:
        self._world.did.append(f"take over {before.revision}")

    async def bring_forward(self, known: Known) -> bool:
        assert self.revision >= 0, "it is loaded first"
        if self.revision < known.current in self._world.gaps:
            return False
        self.revision = max(self.revision, known.current)
        return True

    async def settled(self) -> None:
        return None


class Snapshots:
    """A store of snapshots in a dictionary."""

    def __init__(self) -> None:
        self.held: dict[str, Snapshot] = {}

    async def mark(self, scope: Scope) -> Mark:
        return Mark(0, 0)

    async def keep(self, scope: Scope, kind: SnapshotKind, mark: Mark, snapshot: Snapshot) -> bool:
        self.held[scope.key] = snapshot
        return True

    async def kept(self, scope: Scope, kind: SnapshotKind, layout: str) -> Snapshot | None:
        return self.held.get(scope.key)

    async def taken_at(self, scope: Scope, kind: SnapshotKind, layout: str) -> Any:
        return self.held[scope.key].taken_at if scope.key in self.held else None

    async def drop(self, scope: Scope) -> None:
        self.held.pop(scope.key, None)


@dataclass
class Bench:
    """A shelf on a clock; `shelf()` is that of another process."""

    world: World = field(default_factory=World)
    snapshots: Snapshots = field(default_factory=Snapshots)
    behind: Behind = field(default_factory=lambda: Behind(later_seconds=0))
    now: float = 1_000.0
    sizes: Callable[[Scope], int] = lambda _: 10

    def __post_init__(self) -> None:
        self.world.may_load.set()

    def shelf(self, max_bytes: int = 100) -> Shelf[Numbered]:
        def kept(scope: Scope) -> Kept:
            return Kept(self.snapshots, self.behind, scope, SnapshotKind.FACTS, 1, lambda: self.now)

        def make(scope: Scope) -> Numbered:
            return Numbered(self.world, self.sizes(scope))

        return Shelf(make, kept, max_bytes, self.behind, lambda: self.now)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_it_is_loaded_once_and_kept_and_restored_by_another(bench: Bench) -> None:
    shelf = bench.shelf()
    assert (await shelf.get(MINE, at(3))).revision == 3
    assert (await shelf.get(MINE, at(5))).revision == 5
    await bench.behind.settled()
    assert (await bench.shelf().get(MINE, at(6))).revision == 6
    assert bench.world.did == ["load 3", "restore 3"]


async def test_nothing_is_held_that_is_not_whole(bench: Bench) -> None:
    shelf, bench.world.down = bench.shelf(), True
    with pytest.raises(StoreUnavailable):
        await shelf.get(MINE, at(3))
    assert shelf.held(MINE) is None
    bench.world.down = False
    assert (await shelf.get(MINE, at(3))) is shelf.held(MINE)


async def test_at_once_it_is_loaded_once(bench: Bench) -> None:
    shelf = bench.shelf()
    await asyncio.gather(*(shelf.get(MINE, at(3)) for _ in range(5)))
    assert bench.world.did == ["load 3"]


async def test_one_that_can_not_be_brought_forward_is_replaced(bench: Bench) -> None:
    shelf, bench.world.gaps = bench.shelf(), {4}
    first = await shelf.get(MINE, at(3))
    then = await shelf.get(MINE, at(4))
    assert (first.revision, then.revision) == (3, 4)
    assert shelf.held(MINE) is then
    assert bench.world.did == ["load 3", "load 4", "take over 3"]


async def test_a_kept_one_that_can_not_be_brought_forward_is_read_from_the_stores(bench: Bench) -> None:
    await bench.shelf().get(MINE, at(3))
    await bench.behind.settled()
    bench.world.gaps = {4}
    assert (await bench.shelf().get(MINE, at(4))).revision == 4
    assert bench.world.did == ["load 3", "restore 3", "load 4", "take over 3"]


class TestAge:
    async def test_an_old_one_answers_while_it_is_read_anew(self, bench: Bench) -> None:
        shelf = bench.shelf()
        first = await shelf.get(MINE, at(3))
        bench.now += AGE_SECONDS + 1
        bench.world.hold()
        assert await shelf.get(MINE, at(4)) is first
        await bench.world.loading.wait()
        assert await shelf.get(MINE, at(6)) is first
        bench.world.may_load.set()
        await bench.behind.settled()
        second = shelf.held(MINE)
        assert second is not None
        assert second is not first
        assert second.revision == 6, "it knows no less than what it follows"
        assert bench.world.did == ["load 3", "load 4"], "once, and nothing of it is taken over"

    async def test_what_was_kept_is_as_old_as_it_was_read(self, bench: Bench) -> None:
        await bench.shelf().get(MINE, at(3))
        await bench.behind.settled()
        bench.now += AGE_SECONDS + 1
        shelf = bench.shelf()
        assert (await shelf.get(MINE, at(3))).revision == 3
        await bench.behind.settled()
        assert bench.world.did == ["load 3", "restore 3", "load 3"]
        await shelf.get(MINE, at(3))
        await bench.behind.settled()
        assert len(bench.world.did) == 3

    async def test_what_is_kept_is_as_old_as_its_reading_began(self, bench: Bench) -> None:
        bench.world.hold()
        reading = asyncio.create_task(bench.shelf().get(MINE, at(3)))
        await bench.world.loading.wait()
        bench.now += 100
        bench.world.may_load.set()
        await reading
        await bench.behind.settled()
        assert bench.snapshots.held[MINE.key].taken_at == 1_000 * 1_000_000

    async def test_one_that_was_replaced_is_no_younger(self, bench: Bench) -> None:
        shelf, bench.world.gaps = bench.shelf(), {4}
        await shelf.get(MINE, at(3))
        bench.now += AGE_SECONDS - 1
        await shelf.get(MINE, at(4))
        bench.now += 2
        await shelf.get(MINE, at(4))
        await bench.behind.settled()
        assert bench.world.did[-1] == "load 4"
        assert len(bench.world.did) == 4

    async def test_what_fails_is_tried_again_after_a_while(self, bench: Bench) -> None:
        shelf = bench.shelf()
        first = await shelf.get(MINE, at(3))
        bench.now += AGE_SECONDS + 1
        bench.world.down = True
        for _ in range(3):
            assert await shelf.get(MINE, at(3)) is first
            await bench.behind.settled()
        bench.world.down = False
        await shelf.get(MINE, at(3))
        await bench.behind.settled()
        assert shelf.held(MINE) is first
        bench.now += PAUSE_SECONDS + 1
        await shelf.get(MINE, at(3))
        await bench.behind.settled()
        assert shelf.held(MINE) is not first

    async def test_one_that_was_dropped_meanwhile_does_not_come_back(self, bench: Bench) -> None:
        shelf = bench.shelf()
        await shelf.get(MINE, at(3))
        bench.now += AGE_SECONDS + 1
        bench.world.hold()
        await shelf.get(MINE, at(3))
        await bench.world.loading.wait()
        shelf.drop(MINE)
        bench.world.may_load.set()
        await bench.behind.settled()
        assert shelf.held(MINE) is None


class TestRoom:
    async def test_the_least_recently_used_goes_first_and_the_one_in_use_stays(self, bench: Bench) -> None:
        shelf = bench.shelf(max_bytes=15)
        await shelf.get(MINE, at(1))
        await shelf.get(THEIRS, at(1))
        assert shelf.scopes == [THEIRS]
        assert shelf.bytes == 10

    async def test_one_that_nobody_used_goes_when_another_is_used(self, bench: Bench) -> None:
        shelf = bench.shelf()
        await shelf.get(MINE, at(1))
        bench.now += IDLE_SECONDS + 1
        await shelf.get(THEIRS, at(1))
        assert shelf.scopes == [THEIRS]

    async def test_one_that_is_too_large_is_held_and_not_kept(self, bench: Bench) -> None:
        bench.sizes = lambda scope: 10_000
        await bench.shelf().get(MINE, at(1))
        await bench.behind.settled()
        assert not bench.snapshots.held


class TestKeeping:
    async def test_it_is_kept_and_not_held(self, bench: Bench) -> None:
        shelf = bench.shelf()
        assert await shelf.keep(MINE, at(3))
        assert shelf.held(MINE) is None
        assert (await shelf.get(MINE, at(3))).revision == 3
        assert bench.world.did == ["load 3", "restore 3"]

    async def test_what_was_kept_a_short_while_ago_is_left(self, bench: Bench) -> None:
        shelf = bench.shelf()
        assert await shelf.keep(MINE, at(3))
        assert await shelf.keep(MINE, at(4))
        assert bench.world.did == ["load 3"]

    async def test_one_that_is_too_large_is_told(self, bench: Bench) -> None:
        bench.sizes = lambda scope: 10_000
        assert not await bench.shelf().keep(MINE, at(3))
        assert not bench.snapshots.held
