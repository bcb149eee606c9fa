"""The voice of a text that was read anew: it might as well have been read so at first."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import values_pb2 as values
from services.domain.ids import EpisodeId
from services.domain.instants import Interval
from services.domain.voice import held
from services.llm.tasks import VoiceVerdict
from services.stores.paging import Page
from tests.builders import a_scope, on
from tests.examples import one_in
from tests.integration.resolving import World, a_world
from tests.integration.test_resolver import resolve, voice
from tests.integration.test_resolver_forgets import delete
from tests.integration.test_resolver_laws import SENTENCES, judged_of_voice
from tests.integration.test_resolver_rereading import read_anew, sentences

_graphs = count()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def spoken(world: World, said: Sequence[str], anew: Mapping[int, str]) -> dict[str, Interval]:
    """When each sentence is held by a new graph, after all was said, a year apart, and some read anew."""
    told = replace(world, scope=replace(a_scope(f"voice {next(_graphs)}"), origin="as one"))
    told.engine.judge_of_voice = judged_of_voice
    for at, sentence in enumerate(said):
        episode = await told.episode(str(at), on(f"{2000 + at}-06-01"), ["as it was said"])
        await resolve(told, episode, *_facts(at, sentence))
    for at, sentence in anew.items():
        (episode,) = await told.memory.text.episodes(told.scope, [EpisodeId(f"episode-{at}")])
        await read_anew(told, episode, *_facts(at, sentence), commit=f"anew {at}")
    current = await told.memory.revisions.current(told.scope)
    listed = (await told.memory.voice.list_aspects(told.scope, [], current, Page(1000))).items
    return {one.text: interval for one in listed if (interval := held(one, current)) is not None}


def _facts(at: int, sentence: str) -> list[values.VoiceFact]:
    if not sentence:
        return []
    one = voice(sentence, f"passage-{at}-0")
    one.ends_earlier = True
    return [one]


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(40), deadline=None)
@given(said=st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5), data=st.data())
async def test_what_the_voice_is_read_to_say_anew_might_as_well_have_been_read_at_first(
    world: World, said: list[str], data: st.DataObject
) -> None:
    places = data.draw(st.sets(st.integers(0, len(said) - 1), min_size=1, max_size=3), label="which")
    readings = st.sampled_from(("", *SENTENCES))
    anew = {at: data.draw(readings, label="reading") for at in sorted(places)}
    at_first = [anew.get(at, sentence) for at, sentence in enumerate(said)]
    assert await spoken(world, said, anew) == await spoken(world, at_first, {})


async def test_a_sentence_that_is_read_late_is_ended_by_what_was_said_after_it(world: World) -> None:
    world.engine.judge_of_voice = lambda task: [
        VoiceVerdict(pair.new, pair.candidate, duplicate=False) for pair in task.pairs
    ]
    for at, sentence in enumerate(("", "No tea for me.")):
        episode = await world.episode(str(at), on(f"{2000 + at}-06-01"), ["as it was said"])
        await resolve(world, episode, *_facts(at, sentence))
    (first,) = await world.memory.text.episodes(world.scope, [EpisodeId("episode-0")])
    await read_anew(world, first, *_facts(0, "I like tea."))
    assert await sentences(world) == {"No tea for me."}
    await delete(world, episode)
    assert await sentences(world) == {"I like tea."}
