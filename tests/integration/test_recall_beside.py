"""A small graph beside one of a hundred thousand facts, on Milvus Lite: every leg finds its only fact."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.domain.ids import Revision
from services.domain.scope import Scope
from services.recall.service import Recall
from services.stores.paging import Page
from services.stores.vectors.lite import LiteServer
from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore
from services.stores.vectors.port import Collection, VectorRow, VectorStore
from tests.builders import Maker, a_scope, together
from tests.integration.recalling import Memory, a_memory, triples

pytestmark = pytest.mark.milvus

BATCH = 1_000
MINE = ("Ana", "feeds", "Miso the cat")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path) as memory:
        yield memory


async def a_crowd(memory: Memory, store: VectorStore, scope: Scope, facts: int) -> None:
    """Facts much like the one that is looked for, in the graph store and in the vector store."""
    make = Maker(scope)
    for revision, first in enumerate(range(0, facts, BATCH), start=1):
        commits = [
            make.fact(f"Person {number}", "feeds", f"the cat number {number}", revision=revision)
            for number in range(first, first + BATCH)
        ]
        await memory.world.graph.apply(scope, together(commits))
        statements = [commit.statements[0] for commit in commits]
        vectors = await memory.embedder.passages([one.fact for one in statements])
        rows = [VectorRow(one.id, vector) for one, vector in zip(statements, vectors, strict=True)]
        await store.upsert(scope, Collection.STATEMENTS, rows)


async def copy(scope: Scope, source: VectorStore, target: VectorStore) -> None:
    """Writes the vectors of a small graph to another store as well."""
    for collection in Collection:
        page = await source.scan(scope, collection, Page(BATCH))
        rows = await source.fetch(scope, collection, page.items)
        await target.upsert(scope, collection, list(rows.values()))


@pytest.mark.case("a small graph beside")
@pytest.mark.parametrize(
    "facts", [1_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
async def test_its_only_fact_is_found_by_every_leg(
    memory: Memory, milvus_lite: LiteServer, tmp_path: Path, facts: int
) -> None:
    large, small = a_scope("large", tmp_path.name), a_scope("small", tmp_path.name)
    await memory.tell("mine", "2025-01-01", MINE, scope=small)
    options = MilvusOptions(milvus_lite.uri, "hash", memory.embedder.dimension, f"beside{facts}")
    store = MilvusVectorStore(options)
    try:
        await a_crowd(memory, store, large, facts)
        await copy(small, memory.world.vectors, store)
        recall = Recall(replace(memory.parts, vectors=store))
        beside = replace(memory, recall=recall)
        for query, hints in (("who feeds the cat", ["Ana"]), ("the cat number 7", [])):
            answer = await beside.ask(query, scope=small, entity_hints=hints)
            assert (triples(answer), list(answer.degraded)) == ([MINE], [])
            found = {leg.leg for leg in answer.facts[0].legs}
            assert found >= {"statements_dense", "statements_lexical"}
            assert ("walk" in found) >= bool(hints)
        counts = await memory.world.graph.counts(large, Revision(facts))
        assert counts.statements == facts
    finally:
        await store.close()
