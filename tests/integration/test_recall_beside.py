"""A small graph beside one of a hundred thousand facts, on Milvus Lite: every leg finds its only fact."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from services.domain.scope import Scope
from services.recall.service import Recall
from services.stores.paging import Page
from services.stores.vectors.lite import LiteServer
from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore
from services.stores.vectors.port import Collection, VectorStore
from tests.builders import a_scope
from tests.integration.recalling import Memory, a_memory, triples

pytestmark = pytest.mark.milvus

BATCH = 1_000
MINE = ("Ana", "feeds", "Miso the cat")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path) as memory:
        yield memory


async def copy(scope: Scope, source: VectorStore, target: VectorStore, sorts: Sequence[Collection]) -> None:
    """Writes the vectors of a graph to another store as well."""
    for collection in sorts:
        after = ""
        while True:
            page = await source.scan(scope, collection, Page(BATCH, after))
            rows = await source.fetch(scope, collection, page.items)
            await target.upsert(scope, collection, list(rows.values()))
            if not (after := page.after):
                break


@pytest.mark.case("a small graph beside")
@pytest.mark.parametrize(
    "facts", [1_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
async def test_its_only_fact_is_found_by_every_leg(
    memory: Memory, milvus_lite: LiteServer, tmp_path: Path, facts: int
) -> None:
    large, small = a_scope("large", tmp_path.name), a_scope("small", tmp_path.name)
    for first in range(0, facts, BATCH):
        crowd = [
            (f"Person {number}", "feeds", f"cat number {number}") for number in range(first, first + BATCH)
        ]
        await memory.tell(f"crowd-{first}", "2025-01-01", *crowd, scope=large)
    await memory.tell("mine", "2025-01-01", MINE, scope=small)
    options = MilvusOptions(milvus_lite.uri, "hash", memory.embedder.dimension, f"beside{facts}")
    store = MilvusVectorStore(options)
    try:
        await copy(large, memory.world.vectors, store, [Collection.STATEMENTS])
        await copy(small, memory.world.vectors, store, list(Collection))
        recall = Recall(replace(memory.parts, vectors=store))
        beside = replace(memory, recall=recall)
        for scope, wanted in ((small, [MINE]), (large, None)):
            answer = await beside.ask("who feeds the cat", scope=scope, entity_hints=["Ana"])
            assert answer.degraded == []
            assert wanted is None or triples(answer) == wanted
            assert (MINE in triples(answer)) == (wanted is not None)
        answer = await beside.ask("who feeds the cat", scope=small, entity_hints=["Ana"])
        assert {leg.leg for leg in answer.facts[0].legs} == {
            "statements_dense",
            "statements_lexical",
            "walk",
        }
    finally:
        await store.close()
