"""Places: as many as the loop keeps up with, shared fairly, given back whatever happens."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Overloaded
from gateway.interceptors.places import FIRST, LATE_SECONDS, LEAST, Places, leave_place

LONG = 60.0


class Visitor:
    """A call of a tenant: comes, is let in or refused, and goes when told."""

    def __init__(self, places: Places, owner: str) -> None:
        self.state = "waiting"
        self.go = asyncio.Event()
        self.inside = asyncio.Event()
        self._places = places
        self.owner = owner
        self.task = asyncio.create_task(self._visit())

    async def _visit(self) -> None:
        try:
            async with self._places.taken(self.owner):
                self.state = "inside"
                self.inside.set()
                await self.go.wait()
        except Overloaded:
            self.state = "refused"
        except asyncio.CancelledError:
            self.state = "gone"
        else:
            self.state = "gone"


async def settled() -> None:
    """All that can happen now has happened."""
    for _ in range(20):
        await asyncio.sleep(0)


async def arrived(places: Places, *owners: str) -> list[Visitor]:
    made = []
    for owner in owners:
        made.append(Visitor(places, owner))
        await settled()
    return made


async def dismissed(visitors: Sequence[Visitor]) -> None:
    for visitor in visitors:
        visitor.go.set()
    await asyncio.gather(*(visitor.task for visitor in visitors))


async def test_the_last_place_is_not_of_who_has_all_others() -> None:
    visitors = await arrived(Places(3, 10, LONG), "noisy", "noisy", "noisy", "quiet")
    assert [one.state for one in visitors] == ["inside", "inside", "waiting", "inside"]
    await dismissed(visitors)


async def test_a_place_goes_to_who_has_fewest() -> None:
    visitors = await arrived(Places(3, 10, LONG), "a", "a", "b", "a", "b", "c")
    first, *rest = visitors
    first.go.set()
    await settled()
    assert [one.state for one in rest] == ["inside", "inside", "waiting", "waiting", "inside"]
    await dismissed(visitors)


async def test_where_too_many_wait_the_tenant_with_most_of_them_loses_its_newest() -> None:
    places = Places(2, 3, LONG)
    visitors = await arrived(places, "x", "y", "noisy", "noisy", "noisy", "quiet", "quiet")
    states = [one.state for one in visitors]
    assert states == ["inside", "inside", "waiting", "waiting", "refused", "waiting", "refused"]
    await dismissed(visitors)


async def test_who_waits_too_long_is_refused_and_leaves_nothing() -> None:
    places = Places(1, 5, 0.01)
    inside, late = await arrived(places, "a", "b")
    await late.task
    assert late.state == "refused"
    await dismissed([inside])
    (again,) = await arrived(places, "b")
    assert again.state == "inside"
    await dismissed([again])


async def test_a_place_that_is_held_too_long_is_handed_on_once() -> None:
    places = Places(1, 5, LONG, held_seconds=0.01)
    slow, *others = await arrived(places, "a", "b", "c")
    async with asyncio.timeout(30):
        await others[-1].inside.wait()  # each of them holds it too long
    assert slow.state == "inside", "it goes on all the same"
    await dismissed([slow, *others])
    visitors = await arrived(places, "d", "e")
    assert [one.state for one in visitors] == ["inside", "waiting"]
    await dismissed(visitors)


async def test_while_the_loop_is_late_nobody_is_taken_for_waiting() -> None:
    places = Places(1, 5, LONG, held_seconds=0.001)
    places.learn(100 * LATE_SECONDS)  # before anybody has held a place for as long
    slow, other = await arrived(places, "a", "b")
    for _ in range(20):
        places.learn(100 * LATE_SECONDS)
        await asyncio.sleep(0.002)
    assert (slow.state, other.state) == ("inside", "waiting")
    await dismissed([slow, other])


async def test_nobody_waits_longer_than_half_of_the_time_he_has() -> None:
    places = Places(1, 5, LONG)
    (inside,) = await arrived(places, "a")
    with pytest.raises(Overloaded):
        async with places.taken("b", 0.02):
            pass
    await dismissed([inside])


async def test_who_only_waits_gives_its_place_back_once() -> None:
    places = Places(2, 5, LONG)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(places.taken("a"))
        leave_place()
        leave_place()
        both = await arrived(places, "a", "b")
        assert [one.state for one in both] == ["inside", "inside"]
        await dismissed(both)
    leave_place()  # of no call
    visitors = await arrived(places, "a", "b", "c")
    assert [one.state for one in visitors] == ["inside", "inside", "waiting"]
    await dismissed(visitors)


async def test_places_fall_while_the_loop_is_late_and_rise_when_they_are_wanted() -> None:
    places = Places(100, 500, LONG)
    assert places.limit == FIRST
    places.learn(0)
    assert places.limit == FIRST, "nobody wants more"
    visitors = await arrived(places, *("ab"[number % 2] for number in range(200)))
    for _ in range(100):
        places.learn(0)
    assert places.limit == 100
    for _ in range(100):
        places.learn(10 * LATE_SECONDS)
    assert places.limit == LEAST
    await settled()
    assert sum(one.state == "inside" for one in visitors) == 100, "nobody is sent away"
    await dismissed(visitors)


async def test_there_are_never_more_than_there_may_be() -> None:
    places = Places(2, 5, LONG)
    for _ in range(50):
        places.learn(1)
    assert places.limit == 2


OWNERS = st.sampled_from("abc")
MOVES = st.lists(st.one_of(OWNERS, st.integers(0, 20)), max_size=40)


@pytest.mark.parametrize("most", [1, 3])
@given(moves=MOVES, cancelled=st.booleans())
async def test_nobody_waits_beside_a_free_place(most: int, moves: list[str | int], cancelled: bool) -> None:
    places = Places(most, 6, LONG)
    visitors: list[Visitor] = []
    for move in moves:
        if isinstance(move, str):
            visitors += await arrived(places, move)
        elif visitors:
            leaver = visitors[move % len(visitors)]
            if cancelled:
                leaver.task.cancel()
            else:
                leaver.go.set()
            await settled()
        inside = [one for one in visitors if one.state == "inside"]
        waiting = [one for one in visitors if one.state == "waiting"]
        assert len(inside) <= most
        assert len(waiting) <= 6
        if len(inside) < most:
            owners = {one.owner for one in inside}
            assert not waiting or {one.owner for one in waiting} <= owners
    await dismissed(visitors)
    (last,) = await arrived(places, "d")
    assert last.state == "inside"
    await dismissed([last])
