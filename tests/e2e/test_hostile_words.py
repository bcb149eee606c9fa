"""Ids and questions shaped like quotes, filters and wildcards, on the real stores: answered, kept apart."""

from collections.abc import AsyncIterator

import grpc.aio
import pytest
import pytest_asyncio

from palimpsest.v1 import entity_pb2, recall_subgraph_pb2
from tests.doubles.product import Tenant
from tests.e2e.talking import Memory, names
from tests.e2e.up_process import UpProcess

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.milvus]

TENANTS = ['") or true or ("', "a_b"]
GRAPHS = [
    '") or true or ("',
    "it's",
    'scope != ""',
    "a-b",
    "a_b",
    "a%",
    "a|b",
    "图-谱",
    "A",
    "a",
    "é",
    "e\u0301",
    " ",
]
QUERIES = [
    "?!…",
    "_",
    "%",
    "🧉",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    '") or true or ("',
    "'; DROP TABLE statements; --",
    "\\",
    "{{.}} $x ${x} %s",
    "\u202e\u200b",
    "？",
    "thing " * 1_667,
    "x" * 10_000,
    "  \t\n ",
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tenants(running: UpProcess) -> AsyncIterator[list[Tenant]]:
    """Two tenants of the running product with hostile names."""
    async with grpc.aio.insecure_channel(running.target) as channel:
        made = [running.tenant(name=name) for name in TENANTS]
        yield [Tenant(one.id, one.key, channel) for one in made]


def thing(tenant: int, graph: int) -> str:
    """What is known in one graph alone."""
    return f"thing{tenant}x{graph}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def memories(tenants: list[Tenant]) -> dict[str, Memory]:
    """Graphs of hostile names, each knowing of one thing, by that thing."""
    found = {}
    for at, tenant in enumerate(tenants):
        for number, graph in enumerate(GRAPHS):
            memory = Memory(tenant, graph)
            await memory.assert_triples(("Ada", "likes", thing(at, number)), request_id=f"make-{number}")
            found[thing(at, number)] = memory
    return found


@pytest.mark.case("tenant ids and graph ids")
async def test_each_graph_holds_its_own_and_nothing_of_another(memories: dict[str, Memory]) -> None:
    for own, memory in memories.items():
        assert {fact[:3] for fact in await memory.facts()} == {("Ada", "likes", own)}
        recalled = await memory.recall(f"What does Ada like, is it {own} or thing0x0?")
        assert names(recalled.facts) == [("Ada", "likes", own)]
        assert {one.passage.text for one in recalled.passages} == {f"Ada likes {own}"}
        assert {one.graph_id for one in recalled.passages} == {memory.graph}
        asked = recall_subgraph_pb2.GetSubgraphRequest(
            graph_id=memory.graph, seeds=[entity_pb2.EntityRef(name="Ada")], depth=4
        )
        walked = await memory.tenant.call(memory.tenant.recall.GetSubgraph, asked)
        assert {node.entity.name for node in walked.nodes} == {"Ada", own}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.case("a query of only punctuation")
async def test_any_question_gets_an_answer(memories: dict[str, Memory], query: str) -> None:
    memory = memories[thing(0, 0)]
    answer = await memory.recall(query)
    assert {name[2] for name in names(answer.facts)} <= {thing(0, 0)}
    assert list(answer.degraded) == []
    hinted = await memory.recall(
        query, entity_hints=[entity_pb2.EntityRef(name=query.strip()[:512] or "x")], explain=True
    )
    assert len(hinted.plan.unmatched_hints) == 1


async def test_logs_hold_neither_texts_nor_keys(
    running: UpProcess, tenants: list[Tenant], memories: dict[str, Memory]
) -> None:
    logged = "".join(
        file.read_text(encoding="utf-8", errors="replace") for file in (running.data_dir / "logs").iterdir()
    )
    assert "AssertTriples" in logged, "calls are logged"
    assert not [own for own in memories if own in logged]
    assert not [one for one in tenants if one.key.rpartition("_")[2] in logged]
