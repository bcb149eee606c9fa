"""A reading that is taken back: a text says again what it said, as if it had not been read anew."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.ids import EpisodeId, Revision
from services.domain.memory import Episode
from services.llm.tasks import VoiceVerdict
from tests.builders import a_scope
from tests.examples import one_in
from tests.integration.resolving import Row, World, a_world
from tests.integration.test_resolver import fact, resolve, voice
from tests.integration.test_resolver_forgets import delete
from tests.integration.test_resolver_laws import Telling, believed, judged, tell, tellings
from tests.integration.test_resolver_rereading import lives_in, read_anew, sentences
from tests.integration.upkeeping import episode as an_episode
from tests.integration.upkeeping import told as differences_of
from tests.integration.upkeeping import verify

_graphs = count()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def undo(
    world: World, episode: Episode, read_by: str = "anew", commit: str = "undo"
) -> pb.UndoReadingResponse:
    request = pb.UndoReadingRequest(commit_id=commit, episode_id=episode.id, read_by=read_by, actor="key:1")
    return await world.resolver.undo_reading(world.scope, request)


async def test_a_text_says_again_what_it_said_and_the_reading_stays_known(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.", "I like tea.")
    await resolve(world, text, lives_in("Graz"), voice("I like tea.", "passage-a-1"))
    before = await world.timeline("Ana", "lives_in")
    read = await read_anew(world, text, lives_in("Grazz"))
    assert await sentences(world) == set()
    done = await undo(world, text)
    assert not done.changed_since
    assert (done.claims_revoked, done.outcome.claims) == (1, 1)
    assert await world.timeline("Ana", "lives_in") == before
    assert await sentences(world) == {"I like tea."}
    known = await world.timeline("Ana", "lives_in", Revision(read.revision))
    assert [row[0] for row in known] == ["Grazz"]
    assert await undo(world, text) == done
    assert differences_of((await verify(world)).differences) == []


async def test_what_has_changed_since_stands(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    await resolve(world, text, lives_in("Graz"))
    await read_anew(world, text, lives_in("Linz"), commit="1")
    await read_anew(world, text, lives_in("Wien"), commit="2")
    assert (await undo(world, text, "1")).changed_since
    assert [row[0] for row in await world.timeline("Ana", "lives_in")] == ["Wien"]
    assert not (await undo(world, text, "2", "undo 2")).changed_since
    assert [row[0] for row in await world.timeline("Ana", "lives_in")] == ["Linz"]


async def test_what_was_deleted_since_stays_deleted(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    await resolve(world, text, lives_in("Graz"))
    await read_anew(world, text, lives_in("Linz"))
    await delete(world, text)
    assert (await undo(world, text)).changed_since
    assert await world.timeline("Ana", "lives_in") == []


async def test_a_reading_that_never_was_is_not_taken_back(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    await resolve(world, text, lives_in("Graz"))
    assert (await undo(world, text)).changed_since
    assert [row[0] for row in await world.timeline("Ana", "lives_in")] == ["Graz"]


async def test_what_the_old_reading_had_ended_ends_again(world: World) -> None:
    world.engine.judge_of_voice = lambda task: [
        VoiceVerdict(pair.new, pair.candidate, duplicate=False) for pair in task.pairs
    ]
    earlier = await an_episode(world, "a", "2024-01-01", "I like tea.")
    await resolve(world, earlier, voice("I like tea.", "passage-a-0"))
    later = await an_episode(world, "b", "2024-02-01", "No tea for me.")
    no_tea = voice("I never drink tea.", "passage-b-0")
    no_tea.quote, no_tea.ends_earlier = "No tea for me.", True
    await resolve(world, later, no_tea)
    await read_anew(world, later)
    assert await sentences(world) == {"I like tea."}
    await undo(world, later)
    assert await sentences(world) == {"I never drink tea."}


async def test_texts_that_were_read_anew_are_listed_oldest_first(world: World) -> None:
    texts = [await an_episode(world, name, "2024-01-01", "I like tea.") for name in "abc"]
    for text in texts:
        one = fact(("Ana", "likes", "tea"), f"passage-{text.id.removeprefix('episode-')}-0", "I like tea.")
        await resolve(world, text, one)
    for text in (texts[2], texts[0]):
        await read_anew(world, text, commit="job")
    await read_anew(world, texts[1], commit="another")
    listed = await world.resolver.list_read_anew(world.scope, pb.ListReadAnewRequest(commit_id="job"))
    assert (list(listed.episode_ids), listed.after) == ([texts[2].id, texts[0].id], "")


async def story(world: World, said: list[Telling], anew: dict[int, Telling]) -> dict[str, list[Row]]:
    """What a new graph believes after all was told, and some of it read anew and taken back."""
    told = replace(world, scope=replace(a_scope(f"undone {next(_graphs)}"), origin="as one"))
    told.engine.judge = judged
    for at, telling in enumerate(said):
        await tell(told, str(at), telling)
    texts = {
        at: (await told.memory.text.episodes(told.scope, [EpisodeId(f"episode-{at}")]))[0] for at in anew
    }
    for at, telling in anew.items():
        await read_anew(told, texts[at], telling.fact(f"passage-{at}-0"))
    for at in reversed(anew):
        await undo(told, texts[at])
    return await believed(told)


@pytest.mark.timeout(600)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(40), deadline=None)
@given(told=st.lists(tellings, min_size=1, max_size=5), data=st.data())
async def test_a_reading_that_is_taken_back_might_as_well_not_have_been(
    world: World, told: list[Telling], data: st.DataObject
) -> None:
    """Whatever a model judges, taken back in reverse order."""
    places = st.sets(st.integers(0, len(told) - 1), min_size=1, max_size=3)
    anew = {
        at: replace(data.draw(tellings, label="reading"), said=told[at].said)
        for at in sorted(data.draw(places, label="which"))
    }
    assert await story(world, told, anew) == await story(world, told, {})
