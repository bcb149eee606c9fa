"""The economy profile beside the full one: the same texts, the same facts, fewer calls; and the gate.

One product, one model server; each test has tenants of its own, so that nothing of one is told in another.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import count

import pytest
import pytest_asyncio

from palimpsest.v1 import episode_pb2, errors_pb2, graph_pb2, job_pb2, statement_pb2
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles import model_replies as replies
from tests.doubles.combining import combined
from tests.doubles.model_replies import Asked, Rule
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Product, a_product
from tests.doubles.understanding import understand
from tests.e2e.stories import lines, talk, tell
from tests.e2e.talking import Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

FULL, ECONOMY = graph_pb2.EXTRACTION_PROFILE_FULL, graph_pb2.EXTRACTION_PROFILE_ECONOMY
MOST_CALLS = {FULL: 6, ECONOMY: 3}
"""Of a short message, without repairs."""
SHORT = (
    "I love sushi.",
    "I hate sushi now.",
    "I prefer tea. Always serve nuts. My sister Ida works at Globex since 2021.",
    "John left Google in May and joined Meta. Maya Kapoor leads Atlas. Maya K. likes sailing.",
)
_numbers = count()


@dataclass(frozen=True, slots=True)
class Thrifty:
    """The product and the model behind it."""

    product: Product
    server: ModelServer

    async def memory(self, profile: graph_pb2.ExtractionProfile.ValueType, **more: object) -> Memory:
        """An empty graph of a tenant of its own."""
        memory = Memory(await self.product.tenant(f"tenant-{next(_numbers)}"), "notes")
        settings = graph_pb2.GraphSettings(extraction_profile=profile, **more)  # type: ignore[arg-type]  # fields
        request = graph_pb2.CreateGraphRequest(graph_id=memory.graph, settings=settings)
        await memory.tenant.call(memory.tenant.graphs.CreateGraph, request)
        return memory

    async def asked(self, memory: Memory, said: str, **more: object) -> list[Asked]:
        """What the model was asked for one text."""
        before = len(self.server.asked)
        job = await memory.say(said, "2025-06-30", **more)
        assert job.state == job_pb2.JOB_STATE_SUCCEEDED
        return self.server.asked[before:]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def thrifty(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Thrifty]:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        folder = tmp_path_factory.mktemp("economy")
        async with a_product(folder, engine, now=lambda: on("2026-08-01T12:00:00")) as product:
            yield Thrifty(product, server)
        await engine.aclose()


def spent(job: job_pb2.Job) -> dict[str, int]:
    return {stage.stage: stage.calls for stage in job.receipt.stages}


@pytest.mark.parametrize("profile", [FULL, ECONOMY])
async def test_a_short_message_costs_few_calls(
    thrifty: Thrifty, profile: graph_pb2.ExtractionProfile.ValueType
) -> None:
    memory = await thrifty.memory(profile)
    for said in SHORT:
        before = len(thrifty.server.asked)
        job = await memory.say(said, "2025-06-30", session_id="one")
        calls = len(thrifty.server.asked) - before
        assert job.state == job_pb2.JOB_STATE_SUCCEEDED
        assert sum(spent(job).values()) == calls <= MOST_CALLS[profile], spent(job)
    tasks = {one.task for one in thrifty.server.asked}
    assert "resolve" in tasks, "names, facts and voice were judged in one call"


@pytest.mark.slow
@pytest.mark.slow
async def test_both_profiles_believe_the_same(thrifty: Thrifty) -> None:
    known = []
    for profile in (FULL, ECONOMY):
        memory = await thrifty.memory(profile)
        for name in ("sold", "love-hate", "apple-apple", "injection", "assistant-suggestion"):
            for job in await tell(memory, lines(name)):
                assert job.state == job_pb2.JOB_STATE_SUCCEEDED
        voice = await memory.voice("Do I like sushi?")
        aspects = sorted((one.fact, one.aspect) for one in await memory.statements())
        known.append((await memory.facts(), sorted(one.text for one in voice), aspects))
    assert known[0] == known[1]
    assert known[0][0]


async def test_economy_draws_in_one_call_and_resolves_in_one(thrifty: Thrifty) -> None:
    memory = await thrifty.memory(ECONOMY)
    asked = await thrifty.asked(memory, "I visited Bregenz. Always run the tests.")
    assert [one.task for one in asked] == ["understand", "resolve"]
    drawn, resolved = asked
    assert [turn["text"] for turn in drawn.blocks["turns"]] == ["I visited Bregenz. Always run the tests."]
    assert [fact["triple"][2] for fact in resolved.blocks["world_facts"]] == ["Bregenz"]
    assert [fact["sentence"] for fact in resolved.blocks["voice_facts"]] == ["Always run the tests."]


@pytest.mark.slow
async def test_noise_is_dropped_as_it_is_resolved_and_all_of_it_is_paid_back(thrifty: Thrifty) -> None:
    noisy = Rule("reflect", "Noisetown", replies.answer({"noise_world": [0], "noise_voice": []}))
    thrifty.server.rules.append(noisy)
    memory = await thrifty.memory(ECONOMY)
    before = await balance(memory.tenant)
    job = await memory.say("I live in Noisetown.", "2025-06-30")
    (chunk,) = job.chunks
    assert (job.state, chunk.stage) == (job_pb2.JOB_STATE_SUCCEEDED, episode_pb2.CHUNK_STAGE_NOTHING)
    assert chunk.nothing_reason == errors_pb2.NOTHING_REASON_NO_DURABLE_FACT
    assert dict(chunk.dropped) == {"NOT_DURABLE": 1}
    assert await memory.statements() == []
    assert await balance(memory.tenant) == before
    both = await memory.say("I live in Noisetown. Maya works at Initech.", "2025-06-30")
    assert both.chunks[0].stage == episode_pb2.CHUNK_STAGE_RESOLVED
    assert {fact[2] for fact in await memory.facts()} == {"at Initech"}
    assert both.credits.spent_micros > 0


@pytest.mark.parametrize("profile", [pytest.param(FULL, marks=pytest.mark.slow), ECONOMY])
async def test_a_reflection_that_fails_keeps_what_there_is(
    thrifty: Thrifty, profile: graph_pb2.ExtractionProfile.ValueType
) -> None:
    who = f"Reflectless{profile}"
    thrifty.server.rules.append(Rule("reflect", who, replies.noise()))
    memory = await thrifty.memory(profile)
    job = await memory.say(f"{who} works at Initech.", "2025-06-30")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    assert {fact[0] for fact in await memory.facts()} == {who}
    assert spent(job)["resolve" if profile == ECONOMY else "reflect"] == 2, "once more, then never"


@pytest.mark.parametrize("profile", [pytest.param(FULL, marks=pytest.mark.slow), ECONOMY])
async def test_without_an_aspect_a_fact_is_kept_and_a_sentence_is_not(
    thrifty: Thrifty, profile: graph_pb2.ExtractionProfile.ValueType
) -> None:
    who = f"Aspectless{profile}"
    nothing = {
        "world": [{"number": 0, "aspect": None, "event_at": None}],
        "voice": [{"number": 0, "aspect": None}],
    }
    thrifty.server.rules.append(Rule("classify", who, replies.answer(nothing)))
    memory = await thrifty.memory(profile)
    job = await memory.say(f"{who} works at Initech. Always ask {who}.", "2025-06-30")
    (statement,) = await memory.statements()
    assert (statement.subject.name, statement.aspect) == (who, statement_pb2.GRAPH_ASPECT_UNSPECIFIED)
    assert await memory.voice("Whom to ask?") == []
    assert dict(job.chunks[0].dropped) == {"UNCLASSIFIED_VOICE": 1}


SMALL = ("ok thanks!", "Good morning!", "好的，谢谢！", "你好")


@pytest.mark.parametrize("profile", [pytest.param(FULL, marks=pytest.mark.slow), ECONOMY])
async def test_small_talk_reaches_no_model_and_costs_nothing(
    thrifty: Thrifty, profile: graph_pb2.ExtractionProfile.ValueType
) -> None:
    memory = await thrifty.memory(profile)
    before = await balance(memory.tenant)
    asked = len(thrifty.server.asked)
    for said in (*SMALL, talk("Hi!", "Hello!", "thanks")):
        job = await memory.say(said, "2025-06-30")
        (chunk,) = job.chunks
        assert (job.state, chunk.stage) == (job_pb2.JOB_STATE_SUCCEEDED, episode_pb2.CHUNK_STAGE_NOTHING)
        assert chunk.nothing_reason == errors_pb2.NOTHING_REASON_SMALL_TALK
        assert not job.receipt.stages
        assert job.credits.refunded_micros > 0 == job.credits.spent_micros
    assert len(thrifty.server.asked) == asked
    assert await balance(memory.tenant) == before


@pytest.mark.slow
async def test_a_graph_without_the_gate_asks_the_model(thrifty: Thrifty) -> None:
    memory = await thrifty.memory(ECONOMY, relevance_gate=graph_pb2.SAVING_OFF)
    assert [one.task for one in await thrifty.asked(memory, "ok thanks!")] == ["understand"]


@pytest.mark.slow
async def test_what_may_mean_something_passes_the_gate(thrifty: Thrifty) -> None:
    memory = await thrifty.memory(ECONOMY)
    said: Sequence[str] = ("Yes.", "不用了", "thanks, Mel moved to Graz", "see you tomorrow")
    for one in said:
        assert await thrifty.asked(memory, one), one
    confirmed = talk("Which one?", "You use PostgreSQL.", "yes, thanks")
    before = len(thrifty.server.asked)
    await memory.say(confirmed, "2025-06-30")
    assert len(thrifty.server.asked) > before


async def test_short_messages_of_a_session_that_wait_are_understood_in_one_go(thrifty: Thrifty) -> None:
    memory = await thrifty.memory(ECONOMY)
    cities = ("Graz", "Linz", "Wels", "Enns", "Steyr")
    begun, go = threading.Event(), threading.Event()

    def held(asked: Asked) -> replies.Reply:
        begun.set()
        assert go.wait(60), "the others never came"
        return understood(asked)

    thrifty.server.rules.append(Rule("understand", "Batchville", held, times=1))
    said = ["I visited Batchville.", *(f"I visited {city}." for city in cities)]
    before = len(thrifty.server.asked)
    add = memory.tenant.memory.AddEpisode
    prepared = {"session_id": "batch", "wait_for": episode_pb2.CHUNK_STAGE_PREPROCESSED}
    accepted = []
    for one in said:
        accepted.append(await memory.tenant.call(add, memory.episode(one, "2025-06-30", **prepared)))
        await asyncio.to_thread(begun.wait, 60)
    go.set()
    jobs = [await memory.end_of(one.job.job_id) for one in accepted]
    assert {job.state for job in jobs} == {job_pb2.JOB_STATE_SUCCEEDED}
    drawn = [one for one in thrifty.server.asked[before:] if one.task == "understand"]
    assert len(drawn) < len(said)
    assert sorted(turn["text"] for one in drawn for turn in one.blocks["turns"]) == sorted(said)
    calls = [spent(job).get("understand", 0) for job in jobs]
    assert sum(calls) == len(drawn)
    statements = {one.object.entity.name: one for one in await memory.statements()}
    for text, job in zip(said, jobs, strict=True):
        (episode,) = job.result.episode_ids
        city = text.removeprefix("I visited ").removesuffix(".")
        (claim,) = (await memory.read(statements[city].statement_id)).claims
        assert (claim.source.episode_id, claim.source.quote) == (episode, text)


def understood(asked: Asked) -> replies.Reply:
    """As the server answers it without a rule."""
    return combined(asked, understand) or replies.text("")
