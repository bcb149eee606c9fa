"""What was unpacked of what is kept, when its process could not go on: nothing of it stays for later."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_pb2
from services.domain.ids import EpisodeId, Revision
from services.domain.instants import Instant
from services.domain.lexicon import Lexicon
from services.domain.scope import Scope
from services.recall.facts_index import FactsIndex
from services.recall.revisions import Known
from services.recall.shelf import Shelf
from services.stores.errors import StoreUnavailable
from services.stores.memory.lexicons import Lexicons
from tests.integration.recalling import KEEPING, Memory, a_memory
from tests.integration.test_recall_kept import snapshots, words_kept


class Down(Lexicons):
    """Lexicons that can not be read while it is `down`."""

    down = True

    async def at(self, scope: Scope, revision: Revision) -> Lexicon:
        if self.down:
            raise StoreUnavailable("memory")
        return await super().at(scope, revision)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path, options=KEEPING) as memory:
        await memory.tell("a", "2025-01-01", ("Quinoa", "grows_in", "Bolivia"))
        await memory.ask("quinoa")
        await memory.recall.settled()
        yield memory


async def half_restored(memory: Memory) -> tuple[Shelf[FactsIndex], Down]:
    parts = memory.parts
    lexicons = Down(parts.readings, parts.graph, parts.vocabulary)
    shelf = parts.facts_shelf(lexicons)
    with pytest.raises(StoreUnavailable):
        await shelf.get(memory.world.scope, await known(memory))
    return shelf, lexicons


async def known(memory: Memory) -> Known:
    current = await memory.world.memory.revisions.current(memory.world.scope)
    return Known(current, current)


async def test_it_is_unpacked_again_as_if_for_the_first_time(memory: Memory) -> None:
    shelf, lexicons = await half_restored(memory)
    lexicons.down = False
    index = await shelf.get(memory.world.scope, await known(memory))
    fresh = await memory.parts.facts_shelf(lexicons).get(memory.world.scope, await known(memory))
    assert len(index.aliases) == len(fresh.aliases)


async def test_what_is_forgotten_before_it_goes_on_is_neither_held_nor_kept(memory: Memory) -> None:
    shelf, lexicons = await half_restored(memory)
    world, scope = memory.world, memory.world.scope
    await world.memory.text.delete_episode(scope, EpisodeId("episode-a"), Instant(1))
    request = resolver_pb2.RevokeRequest(commit_id="d", episode_id="episode-a", actor="user")
    await world.resolver.revoke(scope, request)
    lexicons.down = False
    index = await shelf.get(scope, await known(memory))
    await memory.recall.settled()
    assert not {"quinoa", "bolivia"} & {*index.entities.words, *index.statements.words}
    assert not index.aliases.mentions("quinoa in Bolivia")
    assert await snapshots(memory)
    assert "quinoa" not in (await words_kept(memory)).casefold()
