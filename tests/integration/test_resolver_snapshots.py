"""What readers keep of a graph goes with every revision by which words go, also one that a crash cut off."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from palimpsest.internal.v1 import erasing_pb2 as erasing
from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.ids import EntityId, Revision, StatementId
from services.domain.instants import Instant
from services.domain.memory import Episode
from services.domain.scope import Scope
from services.resolver.change import Change, change_from_json
from services.stores.graph.port import Commit, Forgetting
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.snapshots import Mark
from tests.builders import on
from tests.integration.keeping import is_kept, keep, keep_late
from tests.integration.resolving import World, a_world, said
from tests.integration.test_erasing_entities import erase
from tests.integration.test_resolver import END, claim, fact, resolve, voice


class Dying(SqlGraphStore):
    """A graph store whose caller dies, once, after words went from it, or before things of somebody go."""

    after_forgetting = False
    before_purging: Callable[[], Awaitable[None]] | None = None

    async def forget(self, scope: Scope, forgetting: Forgetting) -> None:
        await super().forget(scope, forgetting)
        if self.after_forgetting:
            self.after_forgetting = False
            raise asyncio.CancelledError

    async def purge(
        self, scope: Scope, statements: Sequence[StatementId], entities: Sequence[EntityId]
    ) -> None:
        if self.before_purging is not None:
            await self.before_purging()
        await super().purge(scope, statements, entities)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, graph_class=Dying) as world:
        yield world


async def remove_text(world: World, episode: Episode) -> pb.RevokeRequest:
    """What the gateway does first. Whoever reads now reads facts of which the text is gone."""
    await world.memory.text.delete_episode(world.scope, episode.id, Instant(episode.created_at + 1))
    return pb.RevokeRequest(commit_id="delete", episode_id=episode.id, actor="user")


async def test_what_an_episode_said_goes_from_what_was_kept_after_its_text_went(world: World) -> None:
    episode = await claim(world, "a", ("Fay", "likes", "tea"), "2023-01-01")
    asked = await remove_text(world, episode)
    mark = await keep(world)
    await world.resolver.revoke(world.scope, asked)
    assert not await is_kept(world)
    assert await world.memory.snapshots.mark(world.scope) != mark
    await keep(world)
    await world.resolver.revoke(world.scope, asked)
    assert await is_kept(world), "asked again it forgets nothing"


async def test_words_of_the_voice_alone_go_too(world: World) -> None:
    episode = await world.episode("a", on("2023-01-01"), ["I prefer tea."])
    await resolve(world, episode, voice("I prefer tea.", "passage-a-0"))
    asked = await remove_text(world, episode)
    await keep(world)
    await world.resolver.revoke(world.scope, asked)
    assert not await is_kept(world)


async def test_words_of_one_of_two_that_say_the_same_go_too(world: World) -> None:
    first = await claim(world, "a", ("Fay", "likes", "tea"), "2023-01-01")
    await claim(world, "b", ("Fay", "likes", "tea"), "2024-01-01")
    asked = await remove_text(world, first)
    await keep(world)
    await world.resolver.revoke(world.scope, asked)
    assert not await is_kept(world)


async def test_a_revision_that_a_crash_cut_off_is_completed_with_what_was_kept_gone(world: World) -> None:
    """Its words are gone from the graph by then: only the revision tells that any went."""
    assert isinstance(world.graph, Dying)
    episode = await claim(world, "a", ("Fay", "likes", "tea"), "2023-01-01")
    asked = await remove_text(world, episode)
    await keep(world)
    world.graph.after_forgetting = True
    with pytest.raises(asyncio.CancelledError):
        await world.resolver.revoke(world.scope, asked)
    assert await world.memory.revisions.pending(world.scope) is not None
    assert await is_kept(world)
    await world.another().mending.settle(world.scope)
    assert await world.memory.revisions.pending(world.scope) is None
    assert not await is_kept(world)


async def test_what_was_kept_while_an_entity_went_is_gone(world: World) -> None:
    assert isinstance(world.graph, Dying)
    await claim(world, "a", ("Acme", "ceo", "Bob"), "2020-01-01")
    await claim(world, "b", ("Acme", "ceo", "Alice"), "2022-01-01")
    marks: list[Mark] = []

    async def reading() -> None:
        marks.append(await keep(world))

    world.graph.before_purging = reading
    await erase(world, "Bob")
    assert marks
    assert not await is_kept(world)
    assert not await keep_late(world, marks[-1])


async def test_what_was_kept_of_a_graph_goes_with_it(world: World) -> None:
    await claim(world, "a", ("Acme", "ceo", "Bob"), "2020-01-01")
    await keep(world)
    left = await world.resolver.erase_scope(world.scope, erasing.EraseScopeRequest())
    assert not any(one.rows for one in left.stores)
    assert not await is_kept(world)


async def test_revisions_that_forget_nothing_leave_what_is_kept(world: World) -> None:
    first = await claim(world, "a", ("Fay", "likes", "tea"), "2023-01-01")
    await keep(world)
    await world.tell("b", said(END, ("Fay", "likes", "tea"), on("2024-01-01"), first, end=on("2024-01-01")))
    episode = await world.episode("c", on("2024-02-01"), ["I like rum."])
    await resolve(world, episode, fact(("Fay", "likes", "rum"), "passage-c-0", "I like rum."))
    assert await world.memory.revisions.current(world.scope) == 3
    assert await is_kept(world)


async def test_a_change_tells_that_words_go_though_it_was_written_by_an_earlier_release() -> None:
    """Until then records of the voice that were revoked lost their words."""
    revoked = b'{"commit": {"revision": 1}, "voice_revoked": [["v", "r"]]}'
    assert change_from_json(revoked).forgets
    assert not Change(Commit(Revision(1))).forgets
