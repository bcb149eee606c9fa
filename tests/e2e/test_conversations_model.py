"""conversations.yaml with a model behind the OpenAI protocol that does as it is told."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from palimpsest.v1 import (
    common_pb2,
    entity_pb2,
    episode_pb2,
    errors_pb2,
    graph_pb2,
    job_pb2,
    statement_pb2,
    voice_pb2,
)
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles.model_server import MODELS, ModelServer
from tests.doubles.product import Product, a_product
from tests.e2e.stories import Story, case, lines, tell
from tests.e2e.talking import ASSISTANT, USER, Memory, balance, day, day_of, names
from tests.examples import sampled

pytestmark = pytest.mark.asyncio(loop_scope="module")

TODAY = "2026-08-01"
_numbers = count()
FULL, ECONOMY = graph_pb2.EXTRACTION_PROFILE_FULL, graph_pb2.EXTRACTION_PROFILE_ECONOMY
SLOW = pytest.mark.slow


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        folder = tmp_path_factory.mktemp("model")
        async with a_product(folder, engine, now=lambda: on(f"{TODAY}T12:00:00")) as product:
            yield product
        await engine.aclose()


@pytest_asyncio.fixture(
    loop_scope="module",
    params=[pytest.param(FULL, id="full"), pytest.param(ECONOMY, id="economy", marks=SLOW)],
)
async def memory(product: Product, request: pytest.FixtureRequest) -> Memory:
    """An empty graph of a tenant of its own, of either profile."""
    memory = Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")
    settings = graph_pb2.GraphSettings(extraction_profile=request.param)
    asked = graph_pb2.CreateGraphRequest(graph_id=memory.graph, settings=settings)
    await memory.tenant.call(memory.tenant.graphs.CreateGraph, asked)
    return memory


TOLD = [
    Story.of(
        "unrelated-not-closed",
        lines("unrelated-not-closed"),
        ("Service A", "uses", "Redis", "2026-01-05", ""),
        ("Service B", "uses", "Redis", "", "2026-01-09"),
    ),
    Story.of(
        "reassignment",
        lines("reassignment"),
        ("Kiran", "works_on", "Alpha", "2026-01-05", "2026-02-01"),
        ("Kiran", "works_on", "Beta", "2026-02-01", ""),
    ),
    Story.of("sold", lines("sold"), ("User", "owns", "Honda Civic", "2025-04-01", "2025-07-21")),
    Story.of(
        "past-without-date", lines("past-without-date"), ("Bob", "member_of", "the team", "2024-03-05", "")
    ),
    Story.of("last-year", lines("last-year"), ("User", "lives_in", "New York", "2026-01-01", "")),
    Story.of("last-year-zh", lines("last-year-zh"), ("User", "lives_in", "纽约", "2025-01-01", "")),
    Story.of(
        "love-hate",
        lines("love-hate"),
        ("User", "loves", "sushi", "2025-01-01", "2025-06-01"),
        ("User", "hates", "sushi", "2025-06-01", ""),
    ),
    Story.of(
        "apple-apple",
        lines("apple-apple"),
        ("User", "likes", "Apple", "2025-01-01", ""),
        ("User", "likes", "apples", "2025-01-02", ""),
    ),
    Story.of(
        "assistant-suggestion",
        lines("assistant-suggestion"),
        ("Atlas", "uses", "PostgreSQL 16", "2025-01-01", ""),
    ),
    Story.of(
        "chinese",
        lines("chinese"),
        ("主数据库", "uses", "MySQL 8.0", "2026-01-10", "2026-01-24"),
        ("主数据库", "uses", "PostgreSQL 16", "2026-01-24", ""),
    ),
    Story.of("injection", lines("injection"), ("User", "has_pet", "Miso", "2025-01-01", "")),
    Story.of("fed-back", lines("fed-back"), ("User", "lives_in", "Graz", "2025-01-01", "")),
]


@pytest.mark.parametrize("story", sampled(TOLD), ids=lambda story: story.name)
async def test_what_was_said_holds_with_its_dates_and_nothing_else(memory: Memory, story: Story) -> None:
    for job in await tell(memory, story.lines):
        assert job.state == job_pb2.JOB_STATE_SUCCEEDED
        assert [chunk.stage for chunk in job.chunks] == [episode_pb2.CHUNK_STAGE_RESOLVED]
        assert job.receipt.engine == "openai"
        assert {stage.model for stage in job.receipt.stages} <= set(MODELS)
        asked = [stage for stage in job.receipt.stages if stage.calls]
        assert all(stage.tokens_in > 0 and stage.prompt_version for stage in asked)
        stages = {stage.stage for stage in asked}
        assert {"normalise", "extract_world", "extract_voice"} <= stages or "understand" in stages
    assert await memory.facts() == story.facts
    assert await memory.facts(valid_at=day(TODAY)) == {fact for fact in story.facts if not fact[4]}


async def test_what_was_sold_ended_in_a_week(memory: Memory) -> None:
    bought, sold = await tell(memory, lines("sold"))
    (statement,) = await memory.statements()
    assert (statement.invalid_at_precision, statement.invalidated_by) == (
        common_pb2.PRECISION_WEEK,
        sold.result.episode_ids[0],
    )
    assert list(sold.result.ended_statement_ids) == list(bought.result.added_statement_ids)
    (end,) = (await memory.read(statement.statement_id)).ends
    assert (day_of(end, "ended_at"), end.ended_at_precision) == ("2025-07-21", common_pb2.PRECISION_WEEK)
    assert end.source.quote in str(lines("sold")[1][1])
    recalled = await memory.recall("What car do I own?")
    assert [fact.current for fact in recalled.facts] == [False]
    assert "until 2025-07-21" in recalled.context


@pytest.mark.parametrize(
    ("name", "held_in"), sampled([("last-year-zh", "2025-02-15"), ("last-year", "2026-02-15")])
)
async def test_when_it_held_and_when_it_was_learnt_are_two_questions(
    memory: Memory, name: str, held_in: str
) -> None:
    await tell(memory, lines(name))
    (statement,) = await memory.statements()
    assert statement.valid_at_precision == common_pb2.PRECISION_MONTH
    assert statement.spans[0].start_kind == statement_pb2.START_KIND_STATED
    assert day_of(statement, "created_at") == TODAY
    (fact,) = (await memory.recall("Where did I live in February?", as_of=day(held_in))).facts
    assert fact.statement.statement_id == statement.statement_id


async def test_the_current_database_is_found_first_in_chinese(memory: Memory) -> None:
    await tell(memory, lines("chinese"))
    facts = (await memory.recall("主数据库是什么")).facts
    assert [name[2] for name in names(facts)] == ["PostgreSQL 16", "MySQL 8.0"]
    assert [fact.current for fact in facts] == [True, False]
    before = (await memory.recall("主数据库是什么", as_of=day("2026-01-20"))).facts
    assert [name[2] for name in names(before)] == ["MySQL 8.0"]


async def test_what_was_loved_is_hated_now_and_the_store_is_never_empty(memory: Memory) -> None:
    await tell(memory, lines("love-hate"))
    for at, held in (("2025-03-01", "loves"), ("2025-05-31", "loves"), ("2025-06-01", "hates")):
        assert {fact[1] for fact in await memory.facts(valid_at=day(at))} == {held}
    first = (await memory.recall("Do I like sushi?")).facts[0]
    assert (first.statement.predicate.name, first.current) == ("hates", True)
    now = await memory.voice("Do I like sushi?", as_of=day(TODAY))
    assert [one.text for one in now] == ["I hate sushi now."]
    then = await memory.voice("Do I like sushi?", as_of=day("2025-03-01"))
    assert [one.text for one in then] == ["I love sushi."]


async def test_the_company_and_the_fruit_are_two_things(memory: Memory) -> None:
    await tell(memory, lines("apple-apple"))
    objects = [one.object.entity for one in await memory.statements()]
    assert len({one.entity_id for one in objects}) == 2
    assert {one.type for one in objects} == {
        entity_pb2.ENTITY_TYPE_ORGANIZATION,
        entity_pb2.ENTITY_TYPE_CONCEPT,
    }


async def test_nothing_to_remember_is_said_why_and_paid_back(memory: Memory) -> None:
    before = await balance(memory.tenant)
    jobs = await tell(memory, lines("nothing"))
    reasons = [job.chunks[0].nothing_reason for job in jobs]
    assert reasons == [errors_pb2.NOTHING_REASON_SMALL_TALK, errors_pb2.NOTHING_REASON_NO_DURABLE_FACT]
    assert all(job.credits.refunded_micros > 0 == job.credits.spent_micros for job in jobs)
    assert await balance(memory.tenant) == before
    assert await memory.statements() == []
    stages = [{stage.stage for stage in job.receipt.stages} for job in jobs]
    assert stages in ([set(), {"normalise"}], [set(), {"understand"}]), (
        "small talk is told by rules; nothing else is asked"
    )


async def test_a_directive_is_kept_whole_without_a_triple(memory: Memory) -> None:
    ((_, text),) = lines("voice")
    await memory.say(text, "2025-01-01")
    assert await memory.statements() == []
    (aspect,) = await memory.voice("What should you keep in mind?")
    assert (aspect.kind, aspect.text) == (voice_pb2.VOICE_ASPECT_KIND_DIRECTIVE, text)


async def test_what_was_recalled_is_no_new_evidence(memory: Memory) -> None:
    await tell(memory, lines("fed-back"))
    facts, claims = await memory.facts(), await memory.claims()
    context = (await memory.recall("Where do I live?")).context
    assert "--[lives_in]--> (Graz)" in context
    for said in (
        ((ASSISTANT, context),),
        ((USER, "Where do I live?"), (ASSISTANT, f"I know this:\n{context}"), (USER, "Yes, that is right.")),
    ):
        job = await memory.say(said, "2025-02-01")
        assert (job.state, job.result.counts.claims_added) == (job_pb2.JOB_STATE_SUCCEEDED, 0)
    assert await memory.facts() == facts
    assert await memory.claims() == claims


async def test_two_hops_from_text(memory: Memory) -> None:
    for text in (
        "Wen maintains Study.",
        "Study is deployed on Cloudflare Pages.",
        "Study has the storage binding KV: GUESTBOOK.",
    ):
        await memory.say(text, "2026-01-05")
    assert {fact[:3] for fact in await memory.facts()} == {
        (subject, predicate, target) for subject, predicate, target in case("multi-hop")["facts"]
    }
    answer = await memory.recall(case("multi-hop")["ask"], max_hops=2)
    (found,) = [
        fact
        for fact, name in zip(answer.facts, names(answer.facts), strict=True)
        if name[1] == "storage_binding"
    ]
    assert [step.to_entity.name for step in found.path] == ["Study", "KV: GUESTBOOK"]
