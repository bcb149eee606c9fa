"""Vectors of questions: embedded once for graphs that are asked at once, remembered for each graph alone."""

import asyncio
from collections.abc import Sequence

import pytest

from services.domain.scope import GraphId, Scope, TenantId
from services.llm.port import ModelUnavailable, Vectors
from services.recall.hot.queries import QueryVectors
from tests.doubles.embedder import HashEmbedder

ONE, TWO = Scope(TenantId("a"), GraphId("one")), Scope(TenantId("a"), GraphId("two"))
ANOTHERS = Scope(TenantId("b"), GraphId("one"))


class Counting(HashEmbedder):
    """Counts what it embeds, and is down when told."""

    def __init__(self) -> None:
        super().__init__(8)
        self.asked: list[str] = []
        self.down = False

    async def queries(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        await asyncio.sleep(0)
        if self.down:
            raise ModelUnavailable("gone")
        return await super().queries(texts)


async def test_graphs_of_a_tenant_that_are_asked_at_once_embed_once() -> None:
    embedder = Counting()
    vectors = QueryVectors(embedder)
    first, second, anothers = await asyncio.gather(*(vectors.of(at, "tea?") for at in (ONE, TWO, ANOTHERS)))
    assert embedder.asked == ["tea?", "tea?"]  # one for each tenant
    assert list(first) == list(second) == list(anothers)
    assert len(vectors) == 3
    await vectors.of(TWO, "tea?")
    assert len(embedder.asked) == 2


async def test_a_graph_remembers_nothing_of_anothers() -> None:
    embedder = Counting()
    vectors = QueryVectors(embedder)
    await vectors.of(ONE, "tea?")
    await vectors.of(TWO, "tea?")
    assert len(embedder.asked) == 2
    vectors.drop(ONE)
    await vectors.of(TWO, "tea?")
    await vectors.of(ONE, "tea?")
    assert len(embedder.asked) == 3


async def test_a_failure_is_everybodys_and_is_not_kept() -> None:
    embedder = Counting()
    embedder.down = True
    vectors = QueryVectors(embedder)
    told = await asyncio.gather(*(vectors.of(at, "tea?") for at in (ONE, TWO)), return_exceptions=True)
    assert [type(one) for one in told] == [ModelUnavailable] * 2
    embedder.down = False
    assert len(await vectors.of(ONE, "tea?")) == 8


async def test_who_gives_up_takes_nothing_from_the_others() -> None:
    embedder = Counting()
    vectors = QueryVectors(embedder)
    giving_up = asyncio.create_task(vectors.of(ONE, "tea?"))
    staying = asyncio.create_task(vectors.of(TWO, "tea?"))
    await asyncio.sleep(0)
    giving_up.cancel()
    assert len(await staying) == 8
    with pytest.raises(asyncio.CancelledError):
        await giving_up
