"""Recall at its limits: stores and models that are down, filters it refuses, memory it may not exceed."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import recall_pb2 as pb
from services.domain.errors import ValidationFailed
from services.domain.ids import EpisodeId
from services.domain.instants import Instant
from services.llm.port import ModelUnavailable, Vectors
from services.recall.parts import Options
from services.recall.service import Recall
from services.runtime.front import method_name
from services.stores.errors import StoreUnavailable
from tests.doubles.embedder import HashEmbedder
from tests.integration.recalling import Memory, a_memory, triples, twin


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path) as memory:
        yield memory


async def wen(memory: Memory) -> None:
    await memory.tell("wen", "2025-01-01", ("Wen", "maintains", "Study"))
    await memory.tell("kv", "2025-01-03", ("Study", "storage_binding", "KV: GUESTBOOK"))


class BrokenEmbedder(HashEmbedder):
    """An embedder whose endpoint is gone."""

    async def queries(self, texts: object) -> Vectors:
        raise ModelUnavailable("gone")


class TestDegraded:
    async def test_vectors_down(self, memory: Memory) -> None:
        await wen(memory)
        memory.world.vectors.down = True
        with pytest.raises(StoreUnavailable):
            await memory.ask("What does Wen maintain?")
        answer = await memory.ask("What does Wen maintain?", allow_degraded=True)
        assert list(answer.degraded) == ["vectors"]
        assert triples(answer)[0] == ("Wen", "maintains", "Study")

    async def test_embedder_down(self, memory: Memory) -> None:
        await wen(memory)
        memory.recall = Recall(replace(memory.parts, embedder=BrokenEmbedder()))
        with pytest.raises(ModelUnavailable):
            await memory.ask("What does Wen maintain?")
        answer = await memory.ask("What does Wen maintain?", allow_degraded=True)
        assert list(answer.degraded) == ["embedder"]
        assert triples(answer)[0] == ("Wen", "maintains", "Study")
        assert answer.passages

    async def test_graph_down_leaves_passages(self, memory: Memory) -> None:
        await wen(memory)
        await memory.world.graph.close()
        memory.world.vectors.down = False
        broken: Any = DownGraph()
        memory.recall = Recall(replace(memory.parts, graph=broken))
        with pytest.raises(StoreUnavailable):
            await memory.ask("What does Wen maintain?")
        answer = await memory.ask("What does Wen maintain?", allow_degraded=True, entity_hints=["Wen"])
        assert list(answer.degraded) == ["graph"]
        assert not answer.facts
        assert answer.passages[0].passage.text == "Wen maintains Study"


class DownGraph:
    """A graph store that can't be reached."""

    def __getattr__(self, name: str) -> object:
        async def down(*_: object) -> None:
            raise StoreUnavailable("graph")

        return down


class TestRefusals:
    @pytest.mark.parametrize(
        "fields",
        [
            {"graph_aspects": ["Nonsense"]},
            {"voice_aspects": ["Nonsense"]},
            {"time_zone": "Mars/Olympus"},
            {"range_start": 5, "range_end": 5},
        ],
    )
    async def test_unknown_filters_are_refused(self, memory: Memory, fields: dict[str, Any]) -> None:
        with pytest.raises(ValidationFailed):
            await memory.ask("x", **fields)

    async def test_labels_that_nobody_has_find_nothing(self, memory: Memory) -> None:
        await wen(memory)
        assert (await memory.ask("What does Wen maintain?")).facts
        answer = await memory.ask("What does Wen maintain?", labels=["work"])
        assert not answer.facts
        assert not answer.passages

    async def test_an_unknown_name_is_told(self, memory: Memory) -> None:
        await wen(memory)
        answer = await memory.ask("x", entity_hints=["Nobody", "wen"])
        assert list(answer.plan.unmatched_hints) == ["Nobody"]
        assert [entity.name for entity in answer.plan.entities] == ["Wen"]


class TestShelf:
    async def test_indexes_are_bounded_and_answers_stay_the_same(self, tmp_path: Path) -> None:
        async with a_memory(tmp_path, options=Options(facts_bytes=1, texts_bytes=1)) as memory:
            await memory.tell("mine", "2025-01-01", ("Ana", "drinks", "tea"))
            await memory.tell("theirs", "2025-01-01", ("Ben", "drinks", "mate"), scope=twin())
            for _ in range(3):
                assert triples(await memory.ask("drinks")) == [("Ana", "drinks", "tea")]
                assert triples(await memory.ask("drinks", scope=twin())) == [("Ben", "drinks", "mate")]
                assert memory.recall.held_scopes == 1


def test_the_service_has_every_rpc() -> None:
    methods = pb.DESCRIPTOR.services_by_name["RecallService"].methods
    assert all(callable(getattr(Recall, method_name(rpc.name), None)) for rpc in methods)


async def test_vectors_without_room_are_not_taken_over_either(tmp_path: Path) -> None:
    async with a_memory(tmp_path) as memory:
        world, scope = memory.world, memory.world.scope
        await memory.tell("a", "2025-01-01", *[("Ana", "likes", f"tea {n}") for n in range(20)])
        await memory.ask("tea")
        shelf = memory.recall._recalling.texts_shelf
        memory.recall = Recall(replace(memory.parts, options=Options(texts_bytes=shelf.bytes + 1)))
        await memory.ask("tea")
        held = memory.recall._recalling.texts_shelf.held(scope)
        assert held is not None
        assert held.bytes > held._compact_bytes
        await memory.say("b", "2025-01-01", ("Ana", "nothing"))
        await memory.ask("tea")
        await world.memory.text.delete_episode(scope, EpisodeId("episode-b"), Instant(1))
        await memory.tell("d", "2025-01-01", *[("Ana", "likes", f"gin {n}") for n in range(40)])
        await memory.ask("tea")
        held = memory.recall._recalling.texts_shelf.held(scope)
        assert held is not None
        assert held.bytes == held._compact_bytes
