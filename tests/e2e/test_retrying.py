"""RetryJob: only what failed is understood again, under a hold of its own; nothing done or paid twice."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from gateway.credits.audit import audit
from gateway.credits.money import DEFAULT_PRICES
from palimpsest.v1 import credits_pb2, episode_pb2, errors_pb2, job_pb2, jobs_pb2, memory_ingest_pb2
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles import model_replies as replies
from tests.doubles.gateway import Refusal
from tests.doubles.model_replies import Asked, Reply, Rule
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Product, a_product
from tests.doubles.understanding import understand
from tests.e2e.talking import Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = episode_pb2.EPISODE_KIND_DOCUMENT
FAILED, RESOLVED = episode_pb2.CHUNK_STAGE_FAILED, episode_pb2.CHUNK_STAGE_RESOLVED
NOTHING = episode_pb2.CHUNK_STAGE_NOTHING
_numbers = count()


@dataclass(slots=True)
class Library:
    """The product, and a model that declines texts that hold one of the words `declined`."""

    product: Product
    server: ModelServer
    declined: Sequence[str] = ()

    def reply(self, asked: Asked) -> Reply:
        said = " ".join(turn["text"] for turn in asked.blocks["turns"])
        return replies.refused() if any(word in said for word in self.declined) else understand(asked)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Library]:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        folder: Path = tmp_path_factory.mktemp("retrying")
        async with a_product(folder, engine, now=lambda: on("2026-08-01T12:00:00")) as product:
            library = Library(product, server)
            server.rules.append(Rule("extract_world", "", library.reply))
            yield library
            stores = product.running.gateway.stores
            assert await audit(stores.ledger_database, stores.clock) == []
        await engine.aclose()


@pytest.fixture
def library(running: Library) -> Library:
    running.declined = ()
    running.server.asked.clear()
    return running


@pytest_asyncio.fixture(loop_scope="module")
async def memory(library: Library) -> Memory:
    return Memory(await library.product.tenant(f"tenant-{next(_numbers)}", 1_000_000), "notes")


def text(sections: int = 3) -> str:
    """So many chunks, each with one fact."""
    return "".join(f"Service{number} uses Tool{number}.\n{' 7' * 620}\n\n" for number in range(sections))


def asked_again(job: job_pb2.Job, request_id: str = "again") -> jobs_pb2.RetryJobRequest:
    return jobs_pb2.RetryJobRequest(job_id=job.job_id, request_id=request_id)


async def retried(memory: Memory, job: job_pb2.Job, request_id: str = "again") -> job_pb2.Job:
    """The job at the end of a retry."""
    answer = await memory.tenant.call(memory.tenant.jobs.RetryJob, asked_again(job, request_id))
    assert answer.job.job_id == job.job_id
    return await memory.end_of(job.job_id)


async def refused(memory: Memory, job: job_pb2.Job, request_id: str = "again") -> Refusal:
    return await memory.tenant.refused(memory.tenant.jobs.RetryJob, asked_again(job, request_id))


def price(chunks: Sequence[job_pb2.JobChunk]) -> int:
    return sum(DEFAULT_PRICES.ingest(chunk.token_count) for chunk in chunks)


def stages(job: job_pb2.Job) -> list[episode_pb2.ChunkStage.ValueType]:
    return [chunk.stage for chunk in job.chunks]


async def test_only_what_failed_is_tried_again_and_paid_for(library: Library, memory: Memory) -> None:
    library.declined = ["Service1 "]
    first = await memory.say(text(), "2026-01-01", kind=DOCUMENT, document_id="d", request_id="add")
    assert (first.state, stages(first)) == (job_pb2.JOB_STATE_PARTIAL, [RESOLVED, FAILED, RESOLVED])
    library.declined = ()
    library.server.asked.clear()
    again = await retried(memory, first)
    assert (again.state, stages(again)) == (job_pb2.JOB_STATE_SUCCEEDED, [RESOLVED] * 3)
    assert not again.HasField("error")
    said = [turn["text"] for one in library.server.of_task("extract_world") for turn in one.blocks["turns"]]
    assert [words for words in said if "Service" in words and "Service1 " not in words] == []
    assert {fact[0] for fact in await memory.facts()} == {f"Service{number}" for number in range(3)}
    assert set((await memory.claims()).values()) == {1}
    counts = again.result.counts
    assert (counts.statements_added, counts.claims_added) == (3, 3), "of both attempts"
    assert list(again.result.episode_ids) == [chunk.episode_id for chunk in again.chunks]
    assert again.result.document_id == "d"
    assert again.revision > first.revision
    assert again.credits.spent_micros == price(again.chunks)
    assert await balance(memory.tenant) == (1_000_000 - price(again.chunks), 0)
    kinds = [entry.kind for entry in await memory.ledger(again.job_id) if entry.amount_micros < 0]
    assert kinds.count(credits_pb2.LEDGER_ENTRY_KIND_HOLD) == 2, "a hold for each attempt"
    whole = await memory.say(text(), "2026-01-02", kind=DOCUMENT, document_id="d")
    assert whole.credits.spent_micros == 0, "all of it is known now"
    refusal = await refused(memory, again, "once more")
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "JOB_NOT_FAILED")


async def test_a_repeated_call_is_one_retry(library: Library, memory: Memory) -> None:
    library.declined = ["Service0 "]
    first = await memory.say(text(1), "2026-01-01", kind=DOCUMENT)
    assert first.state == job_pb2.JOB_STATE_FAILED
    retry, request = memory.tenant.jobs.RetryJob, asked_again(first)
    second = await retried(memory, first)
    assert (second.state, second.credits.spent_micros) == (job_pb2.JOB_STATE_FAILED, 0)
    assert (await memory.tenant.call(retry, request)).job == second, "it was retried once"
    library.declined = ()
    assert (await memory.tenant.call(retry, request)).job == second
    third = await retried(memory, first, "a third time")
    assert (third.state, third.credits.spent_micros) == (job_pb2.JOB_STATE_SUCCEEDED, price(third.chunks))
    assert await balance(memory.tenant) == (1_000_000 - price(third.chunks), 0)
    other = await memory.say(text(1), "2026-01-03", kind=DOCUMENT, request_id="other")
    refusal = await refused(memory, other, "again")
    assert refusal.reason == "REQUEST_ID_REUSED"
    again = memory.episode(text(1), "2026-01-01", kind=DOCUMENT, request_id="again")
    reused = await memory.tenant.refused(memory.tenant.memory.AddEpisode, again)
    assert reused.reason == "REQUEST_ID_REUSED"


async def test_what_was_learned_meanwhile_is_not_learned_twice(library: Library, memory: Memory) -> None:
    library.declined = ["Service1 "]
    said = {"kind": DOCUMENT, "document_id": "d"}
    first = await memory.say(text(2), "2026-01-01", **said)
    library.declined = ()
    meanwhile = await memory.say(text(2), "2026-01-02", **said)
    assert meanwhile.state == job_pb2.JOB_STATE_SUCCEEDED
    spent = await balance(memory.tenant)
    library.server.asked.clear()
    again = await retried(memory, first)
    assert (again.state, stages(again)) == (job_pb2.JOB_STATE_SUCCEEDED, [RESOLVED, NOTHING])
    assert again.chunks[1].nothing_reason == errors_pb2.NOTHING_REASON_DUPLICATE_CONTENT
    assert library.server.asked == [], "no model is asked"
    assert await balance(memory.tenant) == spent
    assert set((await memory.claims()).values()) == {1}


async def test_a_chunk_whose_text_was_deleted_has_nothing_in_it(library: Library, memory: Memory) -> None:
    library.declined = ["Service0 "]
    first = await memory.say(text(1), "2026-01-01")
    library.declined = ()
    await memory.delete(first.chunks[0].episode_id)
    again = await retried(memory, first)
    assert (again.state, stages(again)) == (job_pb2.JOB_STATE_SUCCEEDED, [NOTHING])
    assert await memory.facts() == set()
    assert await balance(memory.tenant) == (1_000_000, 0)


async def test_a_retry_that_can_not_be_paid_changes_nothing(library: Library) -> None:
    library.declined = ["Service0 "]
    poor = Memory(await library.product.tenant(f"tenant-{next(_numbers)}", 14_000), "notes")
    first = await poor.say(text(1), "2026-01-01", kind=DOCUMENT)
    library.declined = ()
    claims = ("a", "b", "c"), ("d", "e", "f")
    await poor.assert_triples(*claims, *(("x", "y", f"z{number}") for number in range(100)))
    refusal = await refused(poor, first)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "INSUFFICIENT_CREDITS")
    assert int(refusal.info.metadata["required"]) == price(first.chunks)
    asked = jobs_pb2.GetJobRequest(job_id=first.job_id)
    assert (await poor.tenant.call(poor.tenant.jobs.GetJob, asked)).job == first
    async with library.product.running.gateway.stores.ledger.books(poor.tenant.name) as books:  # type: ignore[arg-type]
        await books.grant(poor.tenant.name, "more", 100_000, "")  # type: ignore[arg-type]
    assert (await retried(poor, first)).state == job_pb2.JOB_STATE_SUCCEEDED, "the refusal left its key free"


async def test_what_has_not_failed_is_not_tried_again(library: Library, memory: Memory) -> None:
    done = await memory.say("Atlas uses MySQL.", "2026-01-01")
    asserted = (await memory.assert_triples(("Atlas", "likes", "tea"))).job
    for job in (done, asserted):
        assert (await refused(memory, job)).reason == "JOB_NOT_FAILED"
    library.server.rules.insert(0, Rule("extract_world", "", replies.late(500, replies.refused())))
    accepted = await memory.tenant.call(memory.tenant.memory.AddEpisode, memory.episode("Ada uses Perl."))
    assert (await refused(memory, accepted.job)).reason == "JOB_NOT_FAILED", "it runs"
    asked = jobs_pb2.CancelJobRequest(job_id=accepted.job.job_id)
    await memory.tenant.call(memory.tenant.jobs.CancelJob, asked)
    cancelled = await memory.end_of(accepted.job.job_id)
    library.server.rules.pop(0)
    assert cancelled.state == job_pb2.JOB_STATE_CANCELLED
    assert (await refused(memory, cancelled)).reason == "JOB_NOT_FAILED"


async def test_a_watcher_sees_the_retry(library: Library, memory: Memory) -> None:
    library.declined = ["Service0 "]
    first = await memory.say(text(1), "2026-01-01", kind=DOCUMENT)
    library.declined = ()
    watched = jobs_pb2.WatchJobRequest(job_id=first.job_id)
    async for change in memory.tenant.jobs.WatchJob(watched, metadata=memory.tenant.metadata, timeout=60):
        watched.cursor = change.cursor
    answer = await memory.tenant.call(memory.tenant.jobs.RetryJob, asked_again(first))
    assert answer.job.state in (job_pb2.JOB_STATE_QUEUED, job_pb2.JOB_STATE_RUNNING)
    seen = [
        change.job.chunks[0].stage
        async for change in memory.tenant.jobs.WatchJob(watched, metadata=memory.tenant.metadata, timeout=60)
    ]
    moved = list(dict.fromkeys(seen))
    assert moved[-1] == RESOLVED
    assert episode_pb2.CHUNK_STAGE_PREPROCESSED in moved


async def test_add_episode_repeated_answers_the_retried_job(library: Library, memory: Memory) -> None:
    library.declined = ["Service0 "]
    first = await memory.say(text(1), "2026-01-01", kind=DOCUMENT, request_id="add")
    library.declined = ()
    again = await retried(memory, first)
    repeated: memory_ingest_pb2.AddEpisodeResponse = await memory.tenant.call(
        memory.tenant.memory.AddEpisode,
        memory.episode(text(1), "2026-01-01", kind=DOCUMENT, request_id="add"),
    )
    assert (repeated.job, repeated.replayed) == (again, True)
