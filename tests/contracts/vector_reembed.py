"""Embedding anew on a Milvus server, from real stores, beside a resolver. A server's test gives `uri`."""

import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.domain.memory import Episode
from services.domain.scope import Scope
from services.preprocessor.index import PassageIndex
from services.resolver.service import Resolver
from services.stores.vectors.errors import EmbedderDiffers
from services.stores.vectors.milvus import MilvusVectorStore
from services.stores.vectors.port import Collection, Consistency, Vector
from services.stores.vectors.reembed import Refill, reembed
from services.stores.vectors.sources import Sources, Wanted
from tests.builders import on
from tests.contracts.vector_models import Open, StoresOfAnEmbedder
from tests.doubles.embedder import HashEmbedder
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM, fact, resolve, voice
from tests.integration.test_resolver_forgets import delete

OLD, NEW = HashEmbedder(32), HashEmbedder(48)


class Crash(Exception):
    """The run ends here."""


class ReembedContract(StoresOfAnEmbedder):
    """Subclasses give the fixture `uri`."""

    @pytest.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[World]:
        async with a_world(tmp_path) as world:
            yield world

    async def test_another_embedder_takes_over_while_the_graph_is_written(
        self, opened: Open, world: World
    ) -> None:
        old, calls = opened(OLD.name, OLD.dimension), itertools.count(1)
        writes_with(world, old, OLD)
        first = await tell(world, "first", "Fay", 70)
        second = await tell(world, "second", "Gil", 3)
        await assert_as_wanted(world, old, OLD)

        async def embed(texts: Sequence[str]) -> Vector:
            match next(calls):
                case 2:  # in the middle of it, by a process with the former embedder
                    await tell(world, "third", "Hal", 2)
                    await widen(world, first, ("Fay", "likes", "thing1"))
                    await forget(world, second, OLD)
                case 3:
                    raise Crash
            return await NEW.passages(texts)

        async def scopes() -> Sequence[Scope]:
            return [world.scope]

        new, told = opened(NEW.name, NEW.dimension, filling=True), list[str]()
        sources = Sources(world.graph, world.memory.text, world.memory.voice, world.memory.archive)
        refill = Refill(sources, embed, new)
        with pytest.raises(Crash):
            await reembed(refill, new.models, scopes, 0, say=told.append)
        using = opened(NEW.name, NEW.dimension)
        with pytest.raises(EmbedderDiffers):
            await using.count(world.scope, Collection.STATEMENTS)
        await assert_as_wanted(world, old, OLD)

        await reembed(refill, new.models, scopes, 0, say=told.append)
        assert told[-1] == f"dropped {len(Collection)} former collections"
        await assert_as_wanted(world, using, NEW)
        with pytest.raises(EmbedderDiffers):
            await tell(world, "late", "Ida", 1)
        # A job that failed for it goes on once its process is restarted with the embedder in use.
        writes_with(world, using, NEW)
        await tell(world, "late", "Ida", 1)
        await assert_as_wanted(world, using, NEW)
        assert await world.timeline("Ida", "likes") != []


def writes_with(world: World, vectors: MilvusVectorStore, embedder: HashEmbedder) -> None:
    """From now on the world is written by a process that has this embedder."""
    world.parts = replace(world.parts, vectors=vectors, embedder=embedder)
    world.resolver = Resolver(world.parts)


async def tell(world: World, name: str, who: str, things: int) -> Episode:
    """An episode with a passage, a fact and a preference for each thing, by every service that writes."""
    lines = [f"{who} likes thing{number} since May." for number in range(things)]
    episode = await world.episode(name, on("2024-05-01"), lines)
    passages = await world.memory.text.passages_of(world.scope, episode.id)
    await PassageIndex(world.parts.vectors, world.parts.embedder).add(world.scope, [episode], passages)
    facts = [
        fact((who, "likes", f"thing{number}"), passage.id, passage.text)
        for number, passage in enumerate(passages)
    ]
    spoken = [voice(f"I, {who}, prefer thing{number}.", passages[number].id) for number in range(things)[:5]]
    await resolve(world, episode, *facts, *spoken)
    return episode


async def widen(world: World, episode: Episode, triple: tuple[str, str, str]) -> None:
    """Says of a fact that it held twenty years before."""
    await world.tell("wider", said(CLAIM, triple, on("2024-06-01"), episode, start=on("2004-01-01")))


async def forget(world: World, episode: Episode, embedder: HashEmbedder) -> None:
    """A deletion as the gateway's."""
    passages = await world.memory.text.passages_of(world.scope, episode.id)
    await PassageIndex(world.parts.vectors, embedder).remove(world.scope, passages)
    await delete(world, episode)


async def assert_as_wanted(world: World, vectors: MilvusVectorStore, embedder: HashEmbedder) -> None:
    """Every row that should be there is, with the vector of its text as it is now; and no other."""
    wanted: dict[Collection, dict[str, Wanted]] = defaultdict(dict)
    async for collection, found in Sources(
        world.graph, world.memory.text, world.memory.voice, world.memory.archive
    ).pages(world.scope):
        wanted[collection] |= {id: one for id, one in found.items() if one.text}
    assert set(wanted) == {*Collection} - {Collection.LABELS}
    for collection, rows in wanted.items():
        if not rows:  # nothing is archived here
            assert await vectors.count(world.scope, collection, Consistency.STRONG) == 0
            continue
        there = await vectors.fetch(world.scope, collection, list(rows))
        assert set(there) == set(rows)
        assert await vectors.count(world.scope, collection, Consistency.STRONG) == len(rows)
        expected = await embedder.passages([one.text for one in rows.values()])
        assert all(one.fits(there[id]) and one.is_vector_of(there[id]) for id, one in rows.items())
        assert np.allclose([there[id].vector for id in rows], expected, atol=1e-6)
