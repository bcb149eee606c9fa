"""Two processes on one graph, and writers that crash or pause half way: nothing is lost, nothing revived."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.errors import EpisodeNotFound
from services.domain.ids import EpisodeId
from services.domain.instants import Instant
from services.domain.memory import Episode
from services.domain.records import VerdictKind
from services.domain.scope import Scope
from services.llm.port import ModelUnavailable, Vectors
from services.llm.tasks import JudgeStatements, PairVerdict
from services.resolver.service import Resolver
from services.stores.graph.port import Commit, Records
from services.stores.graph.sql import SqlGraphStore
from services.stores.vectors.port import Collection
from tests.builders import on
from tests.doubles.embedder import HashEmbedder
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM, claim, fact, resolve, stage, voice

TOLD = on("2024-01-01")


class Meddled(SqlGraphStore):
    """A graph store in which something else happens, once, before a commit is applied or records are read."""

    before_apply: Callable[[], Awaitable[Any]] | None = None
    before_records: Callable[[], Awaitable[Any]] | None = None

    async def apply(self, scope: Scope, commit: Commit) -> None:
        meddle, self.before_apply = self.before_apply, None
        if meddle is not None:
            await meddle()
        await super().apply(scope, commit)

    async def records(self, scope: Scope, ids: Any) -> Records:
        meddle, self.before_records = self.before_records, None
        if meddle is not None:
            await meddle()
        return await super().records(scope, ids)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, graph_class=Meddled) as world:
        yield world


def meddled(world: World) -> Meddled:
    assert isinstance(world.graph, Meddled)
    return world.graph


async def delete(world: World, episode: Episode, resolver: Any = None) -> pb.RevokeResponse:
    """As the gateway does: the text, then what it said."""
    await world.memory.text.delete_episode(world.scope, episode.id, Instant(episode.created_at + 1))
    asked = pb.RevokeRequest(commit_id=f"delete {episode.id}", episode_id=episode.id, actor="user")
    answer: pb.RevokeResponse = await (resolver or world.resolver).revoke(world.scope, asked)
    return answer


def told(episode: Episode, target: str = "tea") -> pb.AssertRequest:
    triple = ("Fay", "likes", target)
    return pb.AssertRequest(commit_id=f"tell {episode.id}", assertions=[said(CLAIM, triple, TOLD, episode)])


async def test_one_commit_asked_of_two_processes_at_once_is_recorded_once(world: World) -> None:
    episode = await world.episode("a", TOLD)
    other: list[pb.AssertResponse] = []

    async def the_other() -> None:
        other.append(await world.another().assert_(world.scope, told(episode)))  # noqa: PT009

    meddled(world).before_records = the_other
    mine = await world.resolver.assert_(world.scope, told(episode))  # noqa: PT009
    assert [mine] == other
    assert mine.revision == await world.memory.revisions.current(world.scope) == 1


async def test_a_writer_that_wakes_after_its_work_was_taken_over_revives_nothing(world: World) -> None:
    episode = await world.episode("a", TOLD, ["I like tea."])
    await stage(
        world,
        episode,
        fact(("Fay", "likes", "canary tea"), "passage-a-0", "I like tea."),
        voice("Fay prefers canary tea.", "passage-a-0"),
    )

    async def taken_over() -> None:
        await delete(world, episode, world.another())

    # Begun, and paused before anything is applied: the next process completes it, then deletes all of it.
    meddled(world).before_apply = taken_over
    await resolve_again(world, episode)
    assert await world.timeline("Fay", "likes") == []
    current = await world.memory.revisions.current(world.scope)
    assert current == 2
    assert await world.graph.aliases(world.scope, current) == []
    for collection in (Collection.STATEMENTS, Collection.ENTITIES, Collection.VOICE):
        assert await world.vectors.count(world.scope, collection) == 0
    assert "canary" not in str(await world.memory.voice.of_episode(world.scope, episode.id))


async def resolve_again(world: World, episode: Episode) -> pb.ResolveResponse:
    return await world.resolver.resolve(world.scope, pb.ResolveRequest(episode_id=episode.id))


async def test_an_episode_deleted_while_its_facts_are_resolved_leaves_none(world: World) -> None:
    episode = await world.episode("a", TOLD, ["I like tea."])
    await stage(
        world,
        episode,
        fact(("Fay", "likes", "tea"), "passage-a-0", "I like tea."),
        voice("Fay prefers tea.", "passage-a-0"),
    )
    meddled(world).before_records = lambda: delete(world, episode, world.another())
    with pytest.raises(EpisodeNotFound):
        await resolve_again(world, episode)
    assert await world.timeline("Fay", "likes") == []
    assert await world.memory.voice.of_episode(world.scope, episode.id) == []


async def test_an_episode_deleted_while_its_triples_are_asserted_leaves_none(world: World) -> None:
    episode = await world.episode("a", TOLD)
    meddled(world).before_records = lambda: delete(world, episode, world.another())
    with pytest.raises(EpisodeNotFound):
        await world.resolver.assert_(world.scope, told(episode))  # noqa: PT009
    assert await world.timeline("Fay", "likes") == []


async def test_a_verdict_is_never_taken_for_another_candidate(world: World) -> None:
    """A race that is lost for the revision may leave other candidates in the places that were judged."""
    old = await claim(world, "old", ("Fay", "likes", "tea"), "2023-01-01")
    episode = await world.episode("a", TOLD, ["I went off tea, I like rum."])
    asked: list[str] = []

    def judge(task: JudgeStatements) -> list[PairVerdict]:
        if not asked:
            meddled(world).before_records = the_other  # between the verdicts and the spans that follow
        shown = [task.candidates[pair.candidate].fact for pair in task.pairs]
        asked.extend(shown)
        return [
            PairVerdict(pair.new, pair.candidate, VerdictKind.CONTRADICTS)
            for pair, one in zip(task.pairs, shown, strict=True)
            if "tea" in one
        ]

    async def the_other() -> None:
        await delete(world, old, world.another())
        jam = await world.episode("jam", on("2023-02-01"))
        await world.another().assert_(world.scope, told(jam, "jam"))  # noqa: PT009

    world.engine.judge = judge
    await resolve(world, episode, fact(("Fay", "likes", "rum"), "passage-a-0", "I like rum."))
    assert asked == ["Fay likes tea", "Fay likes jam"]
    assert {name for name, _, end in await world.timeline("Fay", "likes") if end is None} == {"jam", "rum"}


async def test_who_completes_a_large_revision_goes_on_where_its_writer_stopped(world: World) -> None:
    episode = await world.episode("a", TOLD)
    triples = [said(CLAIM, ("Fay", "likes", f"dish {n}"), TOLD, episode) for n in range(300)]
    request = pb.AssertRequest(commit_id="many", assertions=triples)
    embedder = Tiring(texts=400)
    tired = Resolver(replace(world.parts, embedder=embedder))
    for _ in range(2):  # 300 sentences and 301 names
        with pytest.raises(ModelUnavailable):
            await tired.assert_(world.scope, request)  # noqa: PT009
        embedder.texts = 150
    await world.resolver.assert_(world.scope, request)  # noqa: PT009
    assert embedder.embedded == 300 + 3 * 64  # nothing twice
    assert await world.vectors.count(world.scope, Collection.STATEMENTS) == 300
    assert await world.vectors.count(world.scope, Collection.ENTITIES) == 301


class Tiring(HashEmbedder):
    """An embedder that fails once it has embedded so many more texts."""

    def __init__(self, texts: int) -> None:
        super().__init__()
        self.texts = texts
        self.embedded = 0

    async def passages(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > self.texts:
            raise ModelUnavailable("tired")
        self.texts -= len(texts)
        self.embedded += len(texts)
        return await super().passages(texts)


async def test_a_revision_left_begun_is_completed_before_its_episode_is_deleted(world: World) -> None:
    """Words of a voice aspect that others support too go, though they were written after the text went."""
    other = await world.episode("other", on("2023-01-01"), ["I like canary-free tea."])
    await resolve(world, other, voice("Fay likes tea.", "passage-other-0"))
    episode = await world.episode("a", TOLD, ["Tea, says my canary."])
    await stage(world, episode, voice("Fay likes tea.", "passage-a-0"))

    async def crash() -> None:
        raise asyncio.CancelledError

    meddled(world).before_apply = crash
    with pytest.raises(asyncio.CancelledError):
        await resolve_again(world, episode)
    answer = await delete(world, episode, world.another())
    assert (answer.revision, answer.voice) == (3, 1)
    (aspect,) = await world.memory.voice.of_episode(world.scope, EpisodeId("episode-a"))
    assert [claim.quote for claim in aspect.claims if claim.episode == episode.id] == [""]
