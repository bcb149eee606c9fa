"""Laws of the whole resolver over real stores: what was deleted might as well never have been said."""

import hashlib
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from palimpsest.internal.v1.values_pb2 import FACT_KIND_DENIAL as DENIAL
from services.domain.ids import EpisodeId, StatementId
from services.domain.instants import Instant, Interval
from services.domain.records import VerdictKind
from services.domain.voice import held
from services.llm.tasks import JudgeStatements, JudgeVoice, PairVerdict, VoiceVerdict
from services.stores.paging import Page
from services.stores.vectors.port import Collection as Collected
from tests.builders import a_scope, on
from tests.examples import one_in
from tests.integration.resolving import Row, World, a_world
from tests.integration.resolving import said as said_of
from tests.integration.test_resolver import CLAIM, END, fact, resolve, voice

PREDICATES = ("likes", "lives_in")
"""MULTI, where the engine judges, and SINGLE."""
_graphs = count()
KINDS = (VerdictKind.CONTRADICTS, VerdictKind.COMPATIBLE, None)


@dataclass(frozen=True)
class Telling:
    """What one episode says, in the year in which it was said."""

    predicate: str
    target: str
    said: int
    start: int | None
    ends: bool

    def fact(self, passage: str) -> values.WorldFact:
        """As an engine draws it from a passage."""
        one = fact(("Fay", self.predicate, self.target), passage, "as it was said")
        if self.ends:
            one.kind = END
            one.end.at = on(f"{self.said}-03-01")
        elif self.start is not None:
            one.start.at = on(f"{self.start}-01-01")
        return one


tellings = st.builds(
    Telling,
    predicate=st.sampled_from(PREDICATES),
    target=st.sampled_from(("tea", "rum", "jam")),
    said=st.integers(2015, 2019),
    start=st.none() | st.integers(2010, 2015),
    ends=st.booleans(),
)


SAME = {"likes": {"tea", "rum"}, "lives in": {"rum", "jam"}}
"""Objects that are one thing under two names: a judge that means it judges either alike."""


def judged(task: JudgeStatements) -> list[PairVerdict]:
    """Of the same two things always the same, whichever is new, and by whatever name."""
    verdicts: list[PairVerdict] = []
    for pair in task.pairs:
        one, other = _meant(task.new[pair.new].fact), _meant(task.candidates[pair.candidate].fact)
        kind = VerdictKind.DUPLICATE if one == other else _between(one, other)
        if kind is not None:
            verdicts.append(PairVerdict(pair.new, pair.candidate, kind))
    return verdicts


def _meant(fact: str) -> tuple[str, str]:
    """The predicate and the thing of `Fay lives in tea.`"""
    _, *words, target = fact.rstrip(".").split()
    predicate = " ".join(words)
    return predicate, min(SAME[predicate]) if target in SAME[predicate] else target


def _between(one: tuple[str, str], other: tuple[str, str]) -> VerdictKind | None:
    both = "|".join(sorted((*one, *other)))
    return KINDS[hashlib.sha256(both.encode()).digest()[0] % len(KINDS)]


async def tell(world: World, name: str, telling: Telling) -> None:
    episode = await world.episode(name, on(f"{telling.said}-06-01"), ["as it was said"])
    await resolve(world, episode, telling.fact(f"passage-{name}-0"))


async def believed(world: World) -> dict[str, list[Row]]:
    return {predicate: await world.timeline("Fay", predicate) for predicate in PREDICATES}


async def forget(world: World, deleted: Collection[int]) -> None:
    """Deletes episodes as one revision, as a document or a source is; nothing of their texts stays."""
    ids = [EpisodeId(f"episode-{at}") for at in sorted(deleted)]
    before = await every_statement(world)
    await world.memory.text.delete_episodes(world.scope, ids, Instant(1))
    request = pb.RevokeRequest(commit_id="delete", episode_ids=ids, actor="user", target="all of these")
    await world.resolver.revoke(world.scope, request)
    left = await world.graph.records(world.scope, before)
    gone = [one.id for one in left.statements if not one.fact]
    assert await world.vectors.fetch(world.scope, Collected.STATEMENTS, gone) == {}
    there = await world.vectors.fetch(world.scope, Collected.STATEMENTS, before)
    assert set(there) == {one.id for one in left.statements if one.fact}


async def every_statement(world: World) -> Sequence[StatementId]:
    return (await world.graph.scan(world.scope, Page(1000))).items


async def story(world: World, said: Sequence[Telling], deleted: Collection[int]) -> dict[str, list[Row]]:
    """What a new graph believes after all was told, and some of it deleted.

    Of two facts that are equal in all else their ids decide: they are the same in all of these graphs.
    """
    told = replace(world, scope=replace(a_scope(f"graph {next(_graphs)}"), origin="as one"))
    told.engine.judge = judged
    for at, telling in enumerate(said):
        await tell(told, str(at), telling)
    if deleted:
        await forget(told, deleted)
    return await believed(told)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


@pytest.mark.timeout(600)  # hundreds of durable writes: seconds, or minutes on a busy disk
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(40), deadline=None)
@given(said=st.lists(tellings, min_size=1, max_size=6), data=st.data())
async def test_what_is_told_and_deleted_might_as_well_not_have_been_told(
    world: World, said: list[Telling], data: st.DataObject
) -> None:
    """Whatever a model judges: which pairs it is asked about does not depend on what is believed."""
    deleted = data.draw(st.sets(st.integers(0, len(said) - 1), min_size=1, max_size=3), label="deleted")
    rest = [telling for at, telling in enumerate(said) if at not in deleted]
    assert await story(world, said, deleted) == await story(world, rest, ())


SENTENCES = ("tea", "rum", "jam", "figs")


def judged_of_voice(task: JudgeVoice) -> list[VoiceVerdict]:
    """Of the same two sentences always the same, whichever is new."""
    verdicts: list[VoiceVerdict] = []
    for pair in task.pairs:
        one, other = task.new[pair.new].text, task.candidates[pair.candidate].fact
        both = "|".join(sorted((one, other)))
        if one == other:
            verdicts.append(VoiceVerdict(pair.new, pair.candidate, duplicate=True))
        elif hashlib.sha256(both.encode()).digest()[0] % 2:
            verdicts.append(VoiceVerdict(pair.new, pair.candidate, duplicate=False))
    return verdicts


async def spoken(world: World, said: Sequence[str], deleted: Collection[int]) -> dict[str, Interval]:
    """When each sentence is held by a new graph, after all was said, a year apart, and some of it deleted."""
    told = replace(world, scope=a_scope(f"graph {next(_graphs)}"))
    told.engine.judge_of_voice = judged_of_voice
    for at, sentence in enumerate(said):
        if sentence:
            episode = await told.episode(str(at), on(f"{2000 + at}-06-01"), [sentence])
            one = voice(sentence, f"passage-{at}-0")
            one.ends_earlier = True
            await resolve(told, episode, one)
    if deleted:
        await forget(told, deleted)
    current = await told.memory.revisions.current(told.scope)
    listed = (await told.memory.voice.list_aspects(told.scope, [], current, Page(1000))).items
    rows = await told.vectors.count(told.scope, Collected.VOICE)
    assert rows == len(listed), "what nobody said has no vector"
    return {one.text: interval for one in listed if (interval := held(one, current)) is not None}


@pytest.mark.timeout(600)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(40), deadline=None)
@given(said=st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6), data=st.data())
async def test_what_the_voice_said_and_was_deleted_might_as_well_not_have_been_said(
    world: World, said: list[str], data: st.DataObject
) -> None:
    deleted = data.draw(st.sets(st.integers(0, len(said) - 1), min_size=1, max_size=3), label="deleted")
    rest = ["" if at in deleted else sentence for at, sentence in enumerate(said)]
    assert await spoken(world, said, deleted) == await spoken(world, rest, ())


async def test_a_fact_that_is_hidden_when_it_is_told_is_judged_all_the_same(world: World) -> None:
    """Denied, it is believed at no time; with the denial deleted, it is what a model once said of it."""
    denied = await world.episode("denied", on("2020-01-01"), ["as it was said"])
    no = said_of(DENIAL, ("Fay", "likes", "tea"), on("2020-01-01"), denied)
    await world.tell("denied", no)
    world.engine.judge = lambda task: [
        PairVerdict(pair.new, pair.candidate, VerdictKind.CONTRADICTS) for pair in task.pairs
    ]
    for name, target, year in (("tea", "tea", 2018), ("rum", "rum", 2019)):
        episode = await world.episode(name, on(f"{year}-01-01"), ["as it was said"])
        await resolve(world, episode, fact(("Fay", "likes", target), f"passage-{name}-0", "as it was said"))
    assert [row[0] for row in await world.timeline("Fay", "likes")] == ["rum"]
    await world.memory.text.delete_episodes(world.scope, [denied.id], Instant(1))
    await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id="delete", episode_id=denied.id))
    assert await world.timeline("Fay", "likes") == [
        ("tea", on("2018-01-01"), on("2019-01-01")),
        ("rum", on("2019-01-01"), None),
    ]


async def test_a_fact_that_was_given_first_is_judged_when_a_text_tells_it(world: World) -> None:
    given = await world.episode("given", on("2018-01-01"))
    await world.tell("given", said_of(CLAIM, ("Fay", "likes", "tea"), on("2018-01-01"), given))
    world.engine.judge = lambda task: [
        PairVerdict(pair.new, pair.candidate, VerdictKind.CONTRADICTS) for pair in task.pairs
    ]
    for name, target, year in (("rum", "rum", 2019), ("tea", "tea", 2020)):
        episode = await world.episode(name, on(f"{year}-01-01"), ["as it was said"])
        await resolve(world, episode, fact(("Fay", "likes", target), f"passage-{name}-0", "as it was said"))
    await world.memory.text.delete_episodes(world.scope, [given.id], Instant(1))
    await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id="delete", episode_id=given.id))
    assert await world.timeline("Fay", "likes") == [
        ("rum", on("2019-01-01"), on("2020-01-01")),
        ("tea", on("2020-01-01"), None),
    ]
