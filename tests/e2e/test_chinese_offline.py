"""Chinese through the whole product, without a model: said, remembered, and asked as of a past day."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from palimpsest.v1 import graph_pb2
from services.llm.offline import OfflineEngine
from tests.builders import on
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, day, names

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    folder: Path = tmp_path_factory.mktemp("chinese")
    async with a_product(folder, OfflineEngine(), now=lambda: on("2026-08-01")) as product:
        yield product


async def a_memory(product: Product, tenant: str) -> Memory:
    memory = Memory(await product.tenant(tenant), "notes")
    settings = graph_pb2.GraphSettings(user_name="王安", time_zone="Asia/Shanghai")
    asked = graph_pb2.CreateGraphRequest(graph_id="notes", settings=settings)
    await memory.tenant.call(memory.tenant.graphs.CreateGraph, asked)
    return memory


async def test_a_chinese_question_is_answered_as_of_a_past_day(product: Product) -> None:
    memory = await a_memory(product, "a")
    await memory.say("我住在北京。我在谷歌工作。我妹妹叫小红。", "2019-05-01")
    await memory.say("我2020年3月搬到了上海。她不再在阿里工作了。我喜欢简短的回答。", "2020-04-01")
    assert await memory.facts() == {
        ("王安", "lives_in", "北京", "2019-05-01", "2020-03-01"),
        ("王安", "lives_in", "上海", "2020-03-01", ""),
        ("王安", "works_at", "谷歌", "2019-05-01", ""),
        ("王安", "sister", "小红", "2019-05-01", ""),
    }
    now = await memory.recall("我住在哪里？")
    then = await memory.recall("我住在哪里？", as_of=day("2019-12-24"))
    assert names(now.facts)[0] == ("王安", "lives_in", "上海")
    assert names(then.facts)[0] == ("王安", "lives_in", "北京")
    assert ("王安", "lives_in", "上海") not in names(then.facts)
    assert now.engine == "offline"
    assert "上海" in now.context


async def test_the_question_itself_may_name_the_past(product: Product) -> None:
    memory = await a_memory(product, "b")
    await memory.say("我在谷歌工作。", "2023-01-10")
    await memory.say("我上个月离开了谷歌，加入了腾讯。", "2025-06-02")
    asked = await memory.recall("截至2024年3月，我在哪里工作？")
    assert names(asked.facts)[0] == ("王安", "works_at", "谷歌")
    assert ("王安", "works_at", "腾讯") not in names(asked.facts)


async def test_languages_mix_in_one_graph(product: Product) -> None:
    memory = await a_memory(product, "c")
    await memory.say("I live in Graz.", "2024-01-01")
    await memory.say("我2025年搬到了林茨。", "2025-06-01")
    assert {fact[:3] for fact in await memory.facts(valid_at=day("2026-01-01"))} == {
        ("王安", "lives_in", "林茨")
    }
    assert names((await memory.recall("Where do I live?")).facts)[0] == ("王安", "lives_in", "林茨")
