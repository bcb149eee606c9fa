"""What is read anew behind answers: no question reads less from it than from what it has met before."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.domain.ids import EpisodeId
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.recall.service import Recall
from services.stores.memory.following import PlainPassage, Said
from services.stores.memory.port import TextStore
from services.stores.vectors.port import Collection
from tests.integration.recalling import KEEPING, Memory, a_memory, triples
from tests.integration.test_recall_kept import put, snapshots

QUINOA = "who drinks quinoa milk"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path, options=KEEPING) as memory:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        yield memory


class Overtaken:
    """A text store whose first reader of passages hears of them after the second has asked."""

    def __init__(self, text: TextStore) -> None:
        self._text = text
        self._calls = 0
        self.reading, self._asked = asyncio.Event(), asyncio.Event()

    async def passages_in(
        self, scope: Scope, episodes: Sequence[EpisodeId]
    ) -> Sequence[tuple[PlainPassage, Said]]:
        found = await self._text.passages_in(scope, episodes)
        self._calls += 1
        if self._calls == 1:
            self.reading.set()
            await self._asked.wait()
        else:
            self._asked.set()
            # The first goes on as far as it can.
            await asyncio.sleep(0.1)
        return found

    def __getattr__(self, name: str) -> object:
        return getattr(self._text, name)


async def renewing(memory: Memory) -> None:
    """Another process, which reads anew behind its first answer."""
    await memory.ask("tea")
    await memory.recall.settled()
    for kind, snapshot in (await snapshots(memory)).items():
        await put(memory, kind, replace(snapshot, taken_at=Instant(1)))
    text: Any = Overtaken(memory.world.memory.text)
    memory.recall = Recall(replace(memory.parts, text=text))
    await memory.ask("tea")
    await text.reading.wait()


async def test_what_was_deleted_meanwhile_does_not_come_back_into_an_answer(memory: Memory) -> None:
    await memory.tell("b", "2025-01-02", ("Ben", "drinks", "quinoa milk"))
    await renewing(memory)
    world, scope = memory.world, memory.world.scope
    await world.vectors.delete(scope, Collection.PASSAGES, ["passage-b-0"])
    await world.memory.text.delete_episode(scope, EpisodeId("episode-b"), Instant(1))
    answer = await memory.ask(QUINOA, include_facts=False)
    assert [one.passage.text for one in answer.passages] == ["Ana drinks tea"]


async def test_what_was_said_meanwhile_is_found(memory: Memory) -> None:
    await renewing(memory)
    told = await memory.tell("b", "2025-01-02", ("Ben", "drinks", "quinoa milk"))
    answer = await memory.ask(QUINOA, min_revision=told.revision)
    assert ("Ben", "drinks", "quinoa milk") in triples(answer)
    assert "Ben drinks quinoa milk" in [one.passage.text for one in answer.passages]
