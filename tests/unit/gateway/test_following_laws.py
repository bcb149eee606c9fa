"""Laws of the debounce: in whatever order changes and crashes come, the last change is covered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from gateway.ingest.follower import Debounce, Follower
from gateway.store.clock import SkewedClock
from gateway.store.follow_ups import LEASE_SECONDS, FollowUp, FollowUps
from gateway.store.tables import follow_ups
from services.domain.errors import Conflict, GraphNotFound
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.sql.database import Database
from services.stores.sql.engine import engine_for
from tests.examples import one_in

SCOPE = Scope(TenantId("acme"), GraphId("notes"))
OTHER = Scope(TenantId("acme"), GraphId("other"))
QUIET, LONGEST = 5.0, 60.0


@dataclass
class World:
    """A graph that changes, and what is written of it: both as numbers of changes."""

    wishes: FollowUps
    clock: SkewedClock
    changed: int = 0
    written: int = 0
    runs: int = 0
    meanwhile: int = 0
    """Changes that come between reading and writing of the next run."""
    fails: bool = False

    async def change(self) -> None:
        """A change and its wish, as one transaction has both."""
        self.changed += 1
        await self.wishes.want(SCOPE)

    def later(self, seconds: float) -> None:
        self.clock.skew_seconds += seconds

    async def follow(self, _: FollowUp) -> None:
        """Reads all that changed, and writes it."""
        self.runs += 1
        read = self.changed
        for _change in range(self.meanwhile):
            await self.change()
        self.meanwhile = 0
        if self.fails:
            self.fails = False
            raise Conflict
        self.written = max(self.written, read)

    def process(self) -> Follower:
        """Another process that looks for follow-ups."""
        return Follower(self.wishes, self.follow, Debounce(QUIET, LONGEST))

    async def run_to_its_death(self) -> None:
        """A process takes what is due, reads and writes if it can, and is gone before it says so."""
        for one in await self.wishes.take("the dead", QUIET, LONGEST, 9):
            with suppress(Conflict):
                await self.follow(one)


@asynccontextmanager
async def a_world(folder: Path) -> AsyncIterator[World]:
    """Over a file in a folder, which is emptied first."""
    engine = engine_for(f"sqlite:///{folder / 'ledger.db'}")
    async with engine.begin() as connection:
        await connection.run_sync(lambda made: follow_ups.create(made, checkfirst=True))
        await connection.execute(delete(follow_ups))
    clock = SkewedClock()
    database = Database(engine, "ledger")
    try:
        yield World(FollowUps(database, clock), clock)
    finally:
        await database.close()


STEPS = st.sampled_from(["change", "change", "wait", "long", "run", "run", "die", "fail", "meanwhile"])


def test_the_last_change_is_covered_whatever_dies(tmp_path: Path) -> None:
    @given(st.lists(STEPS, max_size=12))
    def law(steps: list[str]) -> None:
        async def told() -> None:
            async with a_world(tmp_path) as world:
                for step in steps:
                    await _take(world, step)
                for _ in range(40):
                    if not await world.wishes.waiting():
                        break
                    world.later(3700)
                    await world.process().run_due()
                assert not await world.wishes.waiting()
                assert world.written == world.changed

        asyncio.run(told())

    settings(max_examples=one_in(20))(law)()


async def _take(world: World, step: str) -> None:
    match step:
        case "change":
            await world.change()
        case "wait":
            world.later(QUIET + 0.1)
        case "long":
            world.later(LEASE_SECONDS + 0.1)
        case "run":
            await world.process().run_due()
        case "die":
            await world.run_to_its_death()
        case "fail":
            world.fails = True
        case "meanwhile":
            world.meanwhile = 1


async def test_a_burst_is_one_run_after_it(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        for _ in range(6):
            await world.change()
            world.later(QUIET / 2)
            assert await world.process().run_due() == 0, "it is not quiet yet"
        world.later(QUIET)
        assert await world.process().run_due() == 1
        assert (world.runs, world.written) == (1, 6)
        world.later(LONGEST)
        assert await world.process().run_due() == 0


async def test_changes_without_end_are_written_all_the_same(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        for _ in range(30):
            await world.change()
            world.later(QUIET / 2)
            await world.process().run_due()
        assert 1 <= world.runs <= 2


async def test_what_changes_while_it_is_written_is_written_after_it(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await world.change()
        world.later(QUIET + 1)
        world.meanwhile = 1
        await world.process().run_due()
        assert (world.written, world.changed) == (1, 2)
        assert await world.process().run_due() == 0, "it is debounced like any other"
        world.later(QUIET + 1)
        await world.process().run_due()
        assert world.written == 2
        assert not await world.wishes.waiting()


async def test_what_one_process_has_no_other_takes(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await world.change()
        world.later(QUIET + 1)
        (taken,) = await world.wishes.take("one", QUIET, LONGEST, 9)
        assert not await world.wishes.take("other", QUIET, LONGEST, 9)
        world.later(LEASE_SECONDS / 2)
        assert await world.wishes.renew(taken, "one")
        assert not await world.wishes.renew(taken, "other")
        world.later(LEASE_SECONDS / 2 + 1)
        assert not await world.wishes.take("other", QUIET, LONGEST, 9), "it was renewed"
        world.later(LEASE_SECONDS)
        assert len(await world.wishes.take("other", QUIET, LONGEST, 9)) == 1
        assert not await world.wishes.done(taken, "one"), "it is another's now"
        assert await world.wishes.waiting() == 1


async def test_a_failure_waits_longer_each_time(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await world.change()
        waits = []
        for _ in range(3):
            world.fails = True
            waited = 0
            while not await world.process().run_due():
                world.later(1)
                waited += 1
            waits.append(waited)
        assert waits[1] < waits[2]
        assert world.written == 0


async def test_nothing_is_wished_of_a_graph_that_is_not_there(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:

        async def gone(_: FollowUp) -> None:
            raise GraphNotFound("notes")

        await world.change()
        await world.wishes.want(OTHER)
        world.later(QUIET + 1)
        assert await Follower(world.wishes, gone, Debounce(QUIET, LONGEST)).run_due() == 2
        assert not await world.wishes.waiting()
