"""RebuildGraph by another model: every text is read anew, beside what is known, and then replaced.

Behind the product is a model that mistakes Graz for Gratz; that of the low tier, which may be chosen,
doesn't.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from palimpsest.v1 import common_pb2, graph_pb2, job_pb2, jobs_pb2, memory_graph_pb2
from palimpsest.v1.episode_pb2 import ChunkStage
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles.model_replies import Asked, Reply, Rule, failing
from tests.doubles.model_server import MODELS, ModelServer
from tests.doubles.product import Product, a_product
from tests.doubles.understanding import understand
from tests.e2e.talking import Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

DULL, SHARP, _ = MODELS
_numbers = count()


def read(asked: Asked) -> Reply:
    reply = understand(asked)
    if asked.task == "extract_world" and asked.model != SHARP:
        told = json.loads(reply.content)
        for fact in told["facts"]:
            fact["object"] = json.loads(json.dumps(fact["object"]).replace("Graz", "Gratz"))
        return replace(reply, content=json.dumps(told))
    return reply


@dataclass(frozen=True, slots=True)
class Readers:
    """The product and the models behind it."""

    product: Product
    server: ModelServer

    async def memory(self, **settings: Any) -> Memory:
        """An empty graph of a tenant of its own."""
        memory = Memory(await self.product.tenant(f"tenant-{next(_numbers)}"), "notes")
        request = graph_pb2.CreateGraphRequest(
            graph_id=memory.graph, settings=graph_pb2.GraphSettings(user_name="Ana", **settings)
        )
        await memory.tenant.call(memory.tenant.graphs.CreateGraph, request)
        return memory

    async def rebuild(self, memory: Memory, **asked: Any) -> job_pb2.Job:
        """Rebuilds by the sharp model, unless told otherwise, and waits for the end."""
        return await memory.end_of((await accept(memory, **asked)).job.job_id)


async def accept(memory: Memory, **asked: Any) -> memory_graph_pb2.RebuildGraphResponse:
    answer: memory_graph_pb2.RebuildGraphResponse = await memory.tenant.call(
        memory.tenant.memory.RebuildGraph, request_of(memory, **asked)
    )
    return answer


def request_of(memory: Memory, **asked: Any) -> memory_graph_pb2.RebuildGraphRequest:
    asked = {"request_id": memory.tenant.request_id(), "medium_model": SHARP} | asked
    return memory_graph_pb2.RebuildGraphRequest(graph_id=memory.graph, **asked)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def readers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Readers]:
    with ModelServer(fallback=read) as server:
        engine = OpenAIEngine(server.settings(max_attempts=1))
        folder, offered = tmp_path_factory.mktemp("readers"), {"offered_models": [DULL, SHARP]}
        async with a_product(folder, engine, now=lambda: on("2026-08-01"), settings=offered) as product:
            yield Readers(product, server)
        await engine.aclose()


async def revision(memory: Memory) -> int:
    asked = graph_pb2.GetGraphRequest(graph_id=memory.graph)
    found = await memory.tenant.call(memory.tenant.graphs.GetGraph, asked)
    return int(found.graph.revision.revision)


async def places(memory: Memory, known_at: int = 0) -> list[str]:
    at = common_pb2.KnownAt(revision=known_at) if known_at else None
    return [name for name, _, _ in await memory.timeline("Ana", "lives_in", at)]


async def test_a_better_model_puts_right_what_was_misread_and_the_past_stays(readers: Readers) -> None:
    memory = await readers.memory()
    first = await memory.say("I live in Graz.", "2025-06-30")
    await memory.assert_triples(("Ana", "works_at", "Initech"), at="2025-05-01")
    assert await places(memory) == ["Gratz"]
    job = await readers.rebuild(memory)
    assert (job.state, job.kind) == (job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_KIND_REBUILD)
    assert await places(memory) == ["Graz"]
    assert await places(memory, first.revision) == ["Gratz"]
    assert ("Ana", "works_at", "Initech") in {one[:3] for one in await memory.facts()}
    counts = job.result.counts
    assert (counts.claims_added, counts.claims_revoked, counts.statements_expired) == (1, 1, 1)
    assert [chunk.episode_id for chunk in job.chunks] == list(first.result.episode_ids)
    assert job.revision > first.revision
    models = {stage.stage: stage.model for stage in job.receipt.stages}
    assert models["extract_world"] == SHARP


async def test_nothing_changes_until_all_is_read(readers: Readers) -> None:
    memory = await readers.memory()
    await memory.say("I live in Graz.", "2025-06-30")
    last = await memory.say("I like skiing.", "2025-07-01")
    seen: list[Asked] = []
    gone_on = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(asked: Asked) -> Reply:
        seen.append(asked)
        loop.call_soon_threadsafe(gone_on.set)
        return replace(read(asked), delay_ms=1500)

    readers.server.rules.append(Rule("normalise", "I like skiing", slowly))
    accepted = await accept(memory)
    await asyncio.wait_for(gone_on.wait(), 30)
    await asyncio.sleep(0.7)
    assert await places(memory) == ["Gratz"]
    assert await revision(memory) == last.revision
    await memory.end_of(accepted.job.job_id)
    readers.server.rules.clear()
    assert await places(memory) == ["Graz"]


async def test_a_text_that_cannot_be_read_keeps_what_it_said(readers: Readers) -> None:
    memory = await readers.memory()
    await memory.say("I live in Graz.", "2025-06-30")
    await memory.say("I work at Initech.", "2025-07-01")
    before, _ = await balance(memory.tenant)
    readers.server.rules.append(Rule("normalise", "I live in Graz", failing(400, "bad")))
    job = await readers.rebuild(memory)
    readers.server.rules.clear()
    assert job.state == job_pb2.JOB_STATE_PARTIAL
    assert await places(memory) == ["Gratz"]
    stages = [ChunkStage.CHUNK_STAGE_FAILED, ChunkStage.CHUNK_STAGE_RESOLVED]
    assert [chunk.stage for chunk in job.chunks] == stages
    after, held = await balance(memory.tenant)
    assert held == 0
    assert before - after == job.credits.spent_micros
    refusal = await memory.tenant.refused(
        memory.tenant.jobs.RetryJob,
        jobs_pb2.RetryJobRequest(job_id=job.job_id, request_id=memory.tenant.request_id()),
    )
    assert refusal.reason == "JOB_NOT_FAILED"
    assert (await readers.rebuild(memory)).state == job_pb2.JOB_STATE_SUCCEEDED
    assert await places(memory) == ["Graz"]


@pytest.mark.slow
async def test_where_no_text_can_be_read_nothing_changes_and_nothing_is_charged(readers: Readers) -> None:
    memory = await readers.memory()
    said = await memory.say("I live in Graz.", "2025-06-30")
    before = await balance(memory.tenant)
    readers.server.rules.append(Rule("", "", failing(400, "bad")))
    job = await readers.rebuild(memory)
    readers.server.rules.clear()
    assert (job.state, job.credits.spent_micros) == (job_pb2.JOB_STATE_FAILED, 0)
    assert job.HasField("error")
    assert await balance(memory.tenant) == before
    assert await places(memory) == ["Gratz"]
    assert await revision(memory) == said.revision


async def test_it_is_quoted_held_and_charged_as_an_ingest(readers: Readers) -> None:
    memory = await readers.memory()
    said = await memory.say("I live in Graz.", "2025-06-30")
    await memory.say("ok, thanks!", "2025-07-01")
    quote = (await accept(memory, validate_only=True)).quote
    assert (quote.chunk_count, quote.credits_micros) == (1, said.credits.spent_micros)
    before, _ = await balance(memory.tenant)
    assert quote.available_micros == before
    refusal = await memory.tenant.refused(
        memory.tenant.memory.RebuildGraph, request_of(memory, max_credits_micros=quote.credits_micros - 1)
    )
    assert refusal.reason == "MAX_CREDITS_EXCEEDED"
    asked = request_of(memory, max_credits_micros=quote.credits_micros)
    first = await memory.tenant.call(memory.tenant.memory.RebuildGraph, asked)
    job = await memory.end_of(first.job.job_id)
    assert job.credits.spent_micros == quote.credits_micros
    after, held = await balance(memory.tenant)
    assert (before - after, held) == (quote.credits_micros, 0)
    await memory.say("I work at Initech.", "2025-07-02")
    again = await memory.tenant.call(memory.tenant.memory.RebuildGraph, asked)
    assert again.job.job_id == first.job.job_id, "whatever it would cost by now"


@pytest.mark.slow
async def test_by_the_prompts_of_this_release_and_the_graph_s_own_models(readers: Readers) -> None:
    memory = await readers.memory(models=graph_pb2.ModelSettings(medium_model=SHARP))
    await memory.say("I live in Graz.", "2025-06-30")
    readers.server.asked.clear()
    job = await readers.rebuild(memory, medium_model="", low_model=DULL, prompt_version="current")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    asked = {one.task: one.model for one in readers.server.asked}
    assert (asked["extract_world"], asked["reflect"]) == (SHARP, DULL)
    assert await places(memory) == ["Graz"]


async def test_a_version_a_model_or_a_graph_that_is_not_there_is_refused(readers: Readers) -> None:
    memory = await readers.memory()
    for field, value in (("prompt_version", "7"), ("medium_model", "another"), ("low_model", "another")):
        refusal = await memory.tenant.refused(
            memory.tenant.memory.RebuildGraph, request_of(memory, **{field: value})
        )
        assert refusal.reason == "VALIDATION_FAILED"
    nowhere = Memory(memory.tenant, "nowhere")
    refusal = await memory.tenant.refused(memory.tenant.memory.RebuildGraph, request_of(nowhere))
    assert refusal.reason == "GRAPH_NOT_FOUND"


@pytest.mark.slow
async def test_an_empty_graph_is_read_in_no_time(readers: Readers) -> None:
    memory = await readers.memory()
    job = await readers.rebuild(memory)
    assert (job.state, job.credits.spent_micros) == (job_pb2.JOB_STATE_SUCCEEDED, 0)


@pytest.mark.slow
async def test_a_document_s_withdrawn_words_stay_withdrawn(readers: Readers) -> None:
    memory = await readers.memory()
    document = {"kind": "EPISODE_KIND_DOCUMENT", "document_id": "who"}
    await memory.say("Ana likes Graz.\n\nAna knows Gus.", "2025-06-30", **document)
    await memory.say("Ana knows Gus.", "2025-09-30", **document)
    assert await spans(memory, "Gratz") == [("2025-06-30", "2025-09-30")]
    assert (await readers.rebuild(memory)).state == job_pb2.JOB_STATE_SUCCEEDED
    assert await spans(memory, "Gratz") == []
    assert await spans(memory, "Graz") == [("2025-06-30", "2025-09-30")]
    assert await spans(memory, "Gus") == [("2025-06-30", "")]


async def spans(memory: Memory, target: str) -> list[tuple[str, str]]:
    return sorted(fact[3:] for fact in await memory.facts() if fact[2] == target)


@pytest.mark.slow
async def test_a_text_is_not_told_what_only_it_says(readers: Readers) -> None:
    """What the bad reading made of it must not be offered to the good one as known."""
    memory = await readers.memory()
    await memory.say("I live in Graz.", "2025-06-30")
    readers.server.asked.clear()
    await readers.rebuild(memory)
    assert readers.server.of_task("extract_world")
    assert [one for one in readers.server.asked if "Gratz" in one.user] == []


@pytest.mark.slow
async def test_a_cancelled_rereading_changes_nothing_more(readers: Readers) -> None:
    memory = await readers.memory()
    await memory.say("I live in Graz.", "2025-06-30")
    before = await balance(memory.tenant)
    readers.server.rules.append(Rule("normalise", "", lambda asked: replace(read(asked), delay_ms=1000)))
    accepted = await accept(memory)
    asked = jobs_pb2.CancelJobRequest(job_id=accepted.job.job_id)
    await memory.tenant.call(memory.tenant.jobs.CancelJob, asked)
    job = await memory.end_of(accepted.job.job_id)
    readers.server.rules.clear()
    assert job.state == job_pb2.JOB_STATE_CANCELLED
    assert await places(memory) == ["Gratz"]
    assert await balance(memory.tenant) == before


@pytest.mark.slow
async def test_a_text_that_is_deleted_while_it_is_read_stays_deleted(readers: Readers) -> None:
    memory = await readers.memory()
    said = await memory.say("I live in Graz.", "2025-06-30")
    readers.server.rules.append(Rule("normalise", "", lambda asked: replace(read(asked), delay_ms=1000)))
    accepted = await accept(memory)
    await memory.delete(said.result.episode_ids[0])
    job = await memory.end_of(accepted.job.job_id)
    readers.server.rules.clear()
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    assert job.credits.spent_micros == 0
    assert await memory.facts() == set()


async def test_a_rebuild_that_made_things_worse_is_undone_for_nothing(readers: Readers) -> None:
    memory = await readers.memory(models=graph_pb2.ModelSettings(medium_model=SHARP))
    await memory.say("I live in Graz.", "2025-06-30")
    await memory.say("I work at Initech.", "2025-07-01")
    facts = await memory.facts()
    worse = await readers.rebuild(memory, medium_model=DULL)
    assert await places(memory) == ["Gratz"]
    before = await balance(memory.tenant)
    job = await readers.rebuild(memory, medium_model="", undo_job_id=worse.job_id)
    assert (job.state, job.kind) == (job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_KIND_REBUILD)
    assert (job.result.counts.claims_added, job.result.counts.claims_revoked) == (1, 1)
    assert await memory.facts() == facts
    assert await places(memory, worse.revision) == ["Gratz"]
    assert await balance(memory.tenant) == before
    again = await readers.rebuild(memory, medium_model="", undo_job_id=worse.job_id)
    assert (again.state, again.result.counts.claims_added) == (job_pb2.JOB_STATE_SUCCEEDED, 0)
    assert await memory.facts() == facts


async def test_what_no_rebuild_of_the_graph_read_is_not_undone(readers: Readers) -> None:
    memory, other = await readers.memory(), await readers.memory()
    said = await memory.say("I live in Graz.", "2025-06-30")
    theirs = await readers.rebuild(other)
    for job_id in (said.job_id, theirs.job_id, "nothing"):
        refusal = await memory.tenant.refused(
            memory.tenant.memory.RebuildGraph, request_of(memory, medium_model="", undo_job_id=job_id)
        )
        assert refusal.reason == "JOB_NOT_FOUND"
    refusal = await memory.tenant.refused(
        memory.tenant.memory.RebuildGraph, request_of(memory, undo_job_id=said.job_id)
    )
    assert refusal.reason == "VALIDATION_FAILED"
