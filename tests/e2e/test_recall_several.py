"""One question to several graphs of a tenant: one answer, whose items tell whose they are."""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from palimpsest.v1 import entity_pb2, recall_pb2
from services.llm import tokens
from services.llm.offline import OfflineEngine
from tests.builders import on
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, names

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    folder: Path = tmp_path_factory.mktemp("several")
    async with a_product(folder, OfflineEngine(), now=lambda: on("2026-08-01")) as product:
        yield product


async def ask(memory: Memory, *graphs: str, **more: object) -> recall_pb2.RecallResponse:
    asked = recall_pb2.RecallRequest(graph_ids=graphs, query="Where does Mara live?", **more)  # type: ignore[arg-type]
    answer: recall_pb2.RecallResponse = await memory.tenant.call(memory.tenant.recall.Recall, asked)
    return answer


async def test_items_of_all_graphs_within_the_limits_of_one(product: Product) -> None:
    tenant = await product.tenant("a")
    home, work = Memory(tenant, "home"), Memory(tenant, "work")
    await home.say("Mara lives in Graz.", "2025-01-01")
    await work.say("Mara lives in Linz.", "2025-02-01")
    await work.say("Mara uses Postgres.", "2025-02-02")
    answer = await ask(home, "home", "work", explain=True)
    assert {("Mara", "lives_in", "Graz"), ("Mara", "lives_in", "Linz")} <= set(names(answer.facts))
    assert {found.graph_id for found in answer.passages} == {"home", "work"}
    assert [one.graph_id for one in answer.revisions] == ["home", "work"]
    assert [seed.name for seed in answer.plan.seeds] == ["Mara", "Mara"]
    assert answer.context.index("# home") < answer.context.index("# work")
    assert tokens.count(answer.context) <= answer.tokens_used + 1
    for found in answer.passages:
        assert answer.evidence[found.evidence].graph_id == found.graph_id
        assert answer.evidence[found.evidence].passage_id == found.passage.passage_id
        assert f"[{found.evidence}]" in answer.context
    few = await ask(home, "home", "work", max_facts=1, max_passages=2, token_budget=60)
    assert (len(few.facts), len(few.passages)) == (1, 2)
    assert tokens.count(few.context) <= 60
    # Each graph alone answers as it does without the other.
    assert names((await ask(home, "home")).facts) == [("Mara", "lives_in", "Graz")]


async def test_a_hinted_id_is_of_one_graph_and_must_be_of_one(product: Product) -> None:
    tenant = await product.tenant("b")
    home, work = Memory(tenant, "home"), Memory(tenant, "work")
    await home.say("Mara lives in Graz.", "2025-01-01")
    await work.say("Nina lives in Linz.", "2025-01-01")
    [mara] = [one.subject for one in await home.statements() if one.subject.name == "Mara"]
    hint = entity_pb2.EntityRef(entity_id=mara.entity_id)
    assert ("Mara", "lives_in", "Graz") in names((await ask(home, "home", "work", entity_hints=[hint])).facts)
    unknown = entity_pb2.EntityRef(entity_id="00000000-0000-5000-8000-000000000000")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await ask(home, "home", "work", entity_hints=[unknown])
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_graph_that_is_not_there_or_anothers_is_not_found(product: Product) -> None:
    memory, other = Memory(await product.tenant("c"), "home"), Memory(await product.tenant("d"), "secret")
    await memory.say("Mara lives in Graz.", "2025-01-01")
    await other.say("Mara lives in Linz.", "2025-01-01")
    for graphs in (("home", "secret"), ("secret", "home"), ("home", "nowhere")):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(memory, *graphs)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
