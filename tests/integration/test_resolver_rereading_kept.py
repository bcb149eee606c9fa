"""Reading anew keeps what a text says of others' facts, and takes nothing for what it is about to drop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.llm.tasks import EntityVerdict
from services.stores.paging import Page
from tests.builders import on
from tests.integration.resolving import World, a_world
from tests.integration.test_resolver import END, fact, resolve, stage
from tests.integration.test_resolver_forgets import delete, every_text
from tests.integration.test_resolver_rereading import lives_in, read_anew
from tests.integration.upkeeping import episode as an_episode

PAGE = Page(100)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


def owns(target: str, passage: str, ended: str = "") -> values.WorldFact:
    one = fact(("Ann", "owns", target), passage, "as it was said")
    if ended:
        one.kind, one.end.at = END, on(ended)
    return one


async def test_an_end_that_names_loosely_what_it_ended_ends_it_still(world: World) -> None:
    bought = await an_episode(world, "a", "2025-04-01", "as it was said")
    sold = await an_episode(world, "b", "2025-08-01", "as it was said")
    await resolve(world, bought, owns("Honda Civic", "passage-a-0"))
    await resolve(world, sold, owns("the Honda", "passage-b-0", "2025-07-01"))
    row = [("Honda Civic", on("2025-04-01"), on("2025-07-01"))]
    assert await world.timeline("Ann", "owns") == row
    await read_anew(world, sold, owns("the Honda", "passage-b-0", "2025-07-01"))
    assert await world.timeline("Ann", "owns") == row


async def test_an_end_does_not_mean_what_is_about_to_go(world: World) -> None:
    text = await an_episode(world, "a", "2025-08-01", "as it was said")
    await resolve(world, text, owns("Honda Civics", "passage-a-0"))
    await read_anew(
        world, text, owns("Honda Civic", "passage-a-0"), owns("the Honda", "passage-a-0", "2025-09-01")
    )
    assert await world.timeline("Ann", "owns") == [("Honda Civic", on("2025-08-01"), on("2025-09-01"))]


async def test_nobody_is_asked_whether_a_name_is_one_that_is_about_to_go(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    await resolve(world, text, fact(("Ana", "knows", "Katarina Holz"), "passage-a-0", "I am in Graz now."))
    world.engine.judge_of_entities = lambda task: [
        EntityVerdict(pair.new, pair.candidate, same=True) for pair in task.pairs
    ]
    world.engine.asked.clear()
    await read_anew(world, text, fact(("Ana", "knows", "Katharina Holz"), "passage-a-0", "I am in Graz now."))
    assert [row[0] for row in await world.timeline("Ana", "knows")] == ["Katharina Holz"]
    assert world.engine.asked == []


async def test_words_without_a_quote_go_with_their_text(world: World) -> None:
    text = await world.episode("a", on("2024-01-01"), ["I am in Graz now."])
    await resolve(world, text, lives_in("Grazz", quote=""))
    await read_anew(world, text, lives_in("Graz"))
    await delete(world, text)
    assert "Grazz" not in await every_text(world)


async def test_a_name_that_both_readings_tell_stays_what_it_was_judged_to_be(world: World) -> None:
    world.engine.judge_of_entities = lambda task: [
        EntityVerdict(pair.new, pair.candidate, same=True) for pair in task.pairs
    ]
    for name, who in (("a", "Katarina Holz"), ("b", "Katharina Holz")):
        text = await an_episode(world, name, "2024-01-01", "as it was said")
        await resolve(world, text, fact(("Ana", "knows", who), f"passage-{name}-0", "as it was said"))
    (merge,) = (await world.memory.readings.list_merges(world.scope, PAGE)).items
    await read_anew(world, text, fact(("Ana", "likes", who), "passage-b-0", "as it was said"))
    (left,) = (await world.memory.readings.list_merges(world.scope, PAGE)).items
    assert (left.id, left.revoked_at) == (merge.id, None)


async def test_a_first_reading_that_comes_late_does_not_count_beside_the_new_one(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    await stage(world, text, lives_in("Grazz"))
    await read_anew(world, text, lives_in("Graz"))
    request = pb.ResolveRequest(episode_id=text.id)
    await world.resolver.resolve(world.scope, request)
    assert [row[0] for row in await world.timeline("Ana", "lives_in")] == ["Graz"]
    assert await world.memory.staging.staged(world.scope, text.id) is None
    await world.resolver.resolve(world.scope, request)
    assert [row[0] for row in await world.timeline("Ana", "lives_in")] == ["Graz"]


async def test_a_name_that_a_reading_dropped_is_judged_again_when_one_tells_it_again(world: World) -> None:
    world.engine.judge_of_entities = lambda task: [
        EntityVerdict(pair.new, pair.candidate, same=True) for pair in task.pairs
    ]
    for name, who in (("a", "Katarina Holz"), ("b", "Katharina Holz")):
        text = await an_episode(world, name, "2024-01-01", "as it was said")
        await resolve(world, text, fact(("Ana", "knows", who), f"passage-{name}-0", "as it was said"))
    await read_anew(world, text, commit="2")
    await read_anew(world, text, fact(("Ana", "knows", who), "passage-b-0", "as it was said"), commit="3")
    merges = (await world.memory.readings.list_merges(world.scope, PAGE)).items
    assert sorted(one.revoked_at is None for one in merges) == [False, True]
