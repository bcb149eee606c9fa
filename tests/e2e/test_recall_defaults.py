"""What a question gets whose caller names nothing: the graph's user, what ended last, a budget."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from palimpsest.v1 import entity_pb2, graph_pb2, recall_subgraph_pb2
from services.llm import tokens
from services.llm.offline import OfflineEngine
from tests.builders import on
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, names

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    folder: Path = tmp_path_factory.mktemp("recall")
    async with a_product(folder, OfflineEngine(), now=lambda: on("2026-08-01")) as product:
        yield product


async def test_i_is_the_user_of_the_graph(product: Product) -> None:
    memory = Memory(await product.tenant("a"), "notes")
    settings = graph_pb2.GraphSettings(user_name="Ana", time_zone="Europe/Vienna")
    asked = graph_pb2.CreateGraphRequest(graph_id="notes", settings=settings)
    await memory.tenant.call(memory.tenant.graphs.CreateGraph, asked)
    await memory.say("I live in Graz.", "2025-01-01")
    assert {fact[:3] for fact in await memory.facts()} == {("Ana", "lives_in", "Graz")}
    answer = await memory.recall("Where do I live?", explain=True)
    assert [seed.name for seed in answer.plan.seeds] == ["Ana"]
    assert names(answer.facts) == [("Ana", "lives_in", "Graz")]
    assert answer.engine == "offline"


async def test_what_ended_follows_what_holds(product: Product) -> None:
    memory = Memory(await product.tenant("b"), "notes")
    await memory.say("Kiran works on project Alpha.", "2026-01-05")
    await memory.say("Kiran was reassigned from Alpha to Beta.", "2026-02-01")
    facts = (await memory.recall("What does Kiran work on?")).facts
    assert [(name[2], fact.current) for name, fact in zip(names(facts), facts, strict=True)] == [
        ("Beta", True),
        ("Alpha", False),
    ]


@pytest.mark.case("first recalled item")
async def test_the_block_keeps_to_the_default_budget_and_its_first_item_is_never_lost(
    product: Product,
) -> None:
    memory = Memory(await product.tenant("c"), "notes")
    words = " and ".join(f"part {number}" for number in range(300))
    for number in range(4):
        await memory.say(f"Atlas uses Tool{number}. It has {words}.", "2026-01-05")
    answer = await memory.recall("What does Atlas use?")
    assert answer.truncated
    assert tokens.count(answer.context) == answer.tokens_used <= 2_000
    assert {f"Tool{number}" for number in range(4)} <= {name[2] for name in names(answer.facts)}
    small = await memory.recall("What does Atlas use?", token_budget=16)
    assert 0 < tokens.count(small.context) <= 16
    whole = await memory.recall("What does Atlas use?", token_budget=100_000)
    assert not whole.truncated
    assert whole.tokens_used > 2_000


async def test_a_subgraph_goes_one_step_unless_told_otherwise(product: Product) -> None:
    memory = Memory(await product.tenant("d"), "notes")
    await memory.assert_triples(("Wen", "maintains", "Study"), ("Study", "deployed_on", "Cloudflare"))
    asked = recall_subgraph_pb2.GetSubgraphRequest(graph_id="notes", seeds=[entity_pb2.EntityRef(name="Wen")])
    near = await memory.tenant.call(memory.tenant.recall.GetSubgraph, asked)
    assert {node.entity.name for node in near.nodes} == {"Wen", "Study"}
    asked.depth = 2
    far = await memory.tenant.call(memory.tenant.recall.GetSubgraph, asked)
    assert {node.entity.name: node.distance for node in far.nodes} == {"Wen": 0, "Study": 1, "Cloudflare": 2}
