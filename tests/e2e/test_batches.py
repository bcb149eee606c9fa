"""BatchAddEpisodes: many texts in one call, each with its own outcome; what they share is known once."""

from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.rpc import error_details_pb2

from gateway.commands.batching import BATCH_BYTES
from gateway.credits.audit import audit
from gateway.credits.money import DEFAULT_PRICES
from palimpsest.errors import error_of_status
from palimpsest.v1 import entity_pb2, episode_pb2, graph_pb2, job_pb2, jobs_pb2, memory_ingest_pb2
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

RESOLVED = episode_pb2.CHUNK_STAGE_RESOLVED
_numbers = count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        folder: Path = tmp_path_factory.mktemp("batches")
        async with a_product(folder, engine, now=lambda: on("2026-08-01T12:00:00")) as product:
            yield product
            stores = product.running.gateway.stores
            assert await audit(stores.ledger_database, stores.clock) == []
        await engine.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    return Memory(await product.tenant(f"tenant-{next(_numbers)}", 1_000_000), "notes")


async def batch(
    memory: Memory, requests: Sequence[memory_ingest_pb2.AddEpisodeRequest]
) -> list[memory_ingest_pb2.BatchAddEpisodesResult]:
    asked = memory_ingest_pb2.BatchAddEpisodesRequest(requests=requests)
    answer = await memory.tenant.call(memory.tenant.memory.BatchAddEpisodes, asked)
    assert [result.request_id for result in answer.results] == [one.request_id for one in requests]
    return list(answer.results)


async def ended(
    memory: Memory, results: Sequence[memory_ingest_pb2.BatchAddEpisodesResult]
) -> list[job_pb2.Job]:
    """The jobs of what was taken, in their final states."""
    return [await memory.end_of(one.response.job.job_id) for one in results if one.HasField("response")]


def said(memory: Memory, *texts: str, **more: Any) -> list[memory_ingest_pb2.AddEpisodeRequest]:
    """Texts of one day, waited for."""
    return [memory.episode(text, "2026-01-01", **({"wait_for": RESOLVED} | more)) for text in texts]


async def test_each_text_has_its_own_outcome(memory: Memory) -> None:
    texts = said(memory, "Atlas uses MySQL.", "Ada uses Perl.", "Bo uses Lua.", "Cy uses Tcl.")
    texts[1].max_credits_micros = 1
    texts[2].time_zone = "Middle/Earth"
    first, dear, wrong, last = await batch(memory, texts)
    assert [job.state for job in await ended(memory, [first, last])] == [job_pb2.JOB_STATE_SUCCEEDED] * 2
    assert first.response.quote.chunk_count == 1
    assert error_of_status(dear.error).reason == "MAX_CREDITS_EXCEEDED"
    assert error_of_status(wrong.error).reason == "VALIDATION_FAILED"
    assert {fact[0] for fact in await memory.facts()} == {"Atlas", "Cy"}
    assert await balance(memory.tenant) == (1_000_000 - 2 * DEFAULT_PRICES.ingest_minimum, 0)


async def test_a_repeated_batch_takes_effect_once(memory: Memory) -> None:
    texts = said(memory, "Atlas uses MySQL.", "Ada uses Perl.")
    first = await batch(memory, texts)
    await ended(memory, first)
    spent = await balance(memory.tenant)
    again = await batch(memory, [*texts, *said(memory, "Bo uses Lua.")])
    assert [one.response.job.job_id for one in again[:2]] == [one.response.job.job_id for one in first]
    assert [one.response.replayed for one in again] == [True, True, False]
    other = said(memory, "Atlas uses Oracle.", request_id=texts[0].request_id)
    (refused,) = await batch(memory, other)
    assert error_of_status(refused.error).reason == "REQUEST_ID_REUSED"
    await ended(memory, again)
    assert (await balance(memory.tenant))[0] == spent[0] - DEFAULT_PRICES.ingest_minimum
    alone = await memory.tenant.call(memory.tenant.memory.AddEpisode, texts[0])
    assert (alone.job.job_id, alone.replayed) == (first[0].response.job.job_id, True)


async def test_jobs_have_the_order_of_the_batch(memory: Memory) -> None:
    texts = said(memory, *(f"Ada{number} uses Perl." for number in range(5)), wait_for=0)
    accepted = [one.response.job.job_id for one in await batch(memory, texts)]
    listed = await memory.tenant.call(memory.tenant.jobs.ListJobs, jobs_pb2.ListJobsRequest(page_size=10))
    assert [job.job_id for job in reversed(listed.jobs)] == accepted
    for job in accepted:
        await memory.end_of(job)


async def test_siblings_that_say_the_same_are_known_once(memory: Memory) -> None:
    texts = said(memory, *["Atlas uses MySQL."] * 6, session_id="s")
    jobs = await ended(memory, await batch(memory, texts))
    assert all(job.state == job_pb2.JOB_STATE_SUCCEEDED for job in jobs)
    assert sum(len(job.chunks) for job in jobs) == 1, "whoever comes first says it"
    assert set((await memory.claims()).values()) == {1}
    assert await balance(memory.tenant) == (1_000_000 - DEFAULT_PRICES.ingest_minimum, 0)


async def test_siblings_of_one_slot_make_one_story(memory: Memory) -> None:
    places = [("Graz", "2024-03-01"), ("Linz", "2025-05-01"), ("Wien", "2026-02-01")]
    declared = graph_pb2.DeclarePredicateRequest(
        graph_id=memory.graph,
        name="inhabits",
        cardinality=entity_pb2.CARDINALITY_SINGLE,
    )
    await memory.tenant.call(memory.tenant.graphs.DeclarePredicate, declared)
    texts = [memory.episode(f"Maya inhabits {place}.", at) for place, at in reversed(places)]
    await ended(memory, await batch(memory, texts))
    assert await memory.timeline("Maya", "inhabits") == [
        ("Graz", "2024-03-01", "2025-05-01"),
        ("Linz", "2025-05-01", "2026-02-01"),
        ("Wien", "2026-02-01", ""),
    ]
    assert len({one.subject.entity_id for one in await memory.statements()}) == 1


async def test_validating_stores_and_spends_nothing(memory: Memory) -> None:
    results = await batch(memory, said(memory, "Atlas uses MySQL.", "Ada uses Perl.", validate_only=True))
    assert all(one.response.quote.credits_micros and not one.response.HasField("job") for one in results)
    assert await balance(memory.tenant) == (1_000_000, 0)
    listed = await memory.tenant.call(memory.tenant.jobs.ListJobs, jobs_pb2.ListJobsRequest())
    assert list(listed.jobs) == []


async def test_as_many_are_taken_as_are_paid_for(product: Product) -> None:
    poor = Memory(
        await product.tenant(f"tenant-{next(_numbers)}", 2 * DEFAULT_PRICES.ingest_minimum), "notes"
    )
    results = await batch(poor, said(poor, *(f"Ada{number} uses Perl." for number in range(4))))
    reasons = [error_of_status(one.error).reason if one.HasField("error") else "" for one in results]
    assert reasons == ["", "", "INSUFFICIENT_CREDITS", "INSUFFICIENT_CREDITS"]
    detail = error_details_pb2.RetryInfo()
    assert not any(one.Unpack(detail) for one in results[2].error.details)
    await ended(poor, results)
    assert await balance(poor.tenant) == (0, 0)


async def test_a_batch_as_a_whole_is_refused_for_what_no_text_is_to_blame_for(memory: Memory) -> None:
    add = memory.tenant.memory.BatchAddEpisodes
    twice = said(memory, "Atlas uses MySQL.", "Ada uses Perl.", request_id="same")
    refusal = await memory.tenant.refused(add, memory_ingest_pb2.BatchAddEpisodesRequest(requests=twice))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED")
    assert refusal.details["BadRequest"].field_violations[0].field == "requests[1].request_id"
    large = said(memory, *["7 " * 1_000_000] * 8)
    refusal = await memory.tenant.refused(add, memory_ingest_pb2.BatchAddEpisodesRequest(requests=large))
    assert (refusal.reason, refusal.info.metadata["limit"]) == ("DOCUMENT_TOO_LARGE", str(BATCH_BYTES))
    too_large, fine = await batch(memory, said(memory, "7 " * 1_100_000, "Bo uses Lua."))
    assert error_of_status(too_large.error).reason == "DOCUMENT_TOO_LARGE"
    await memory.end_of(fine.response.job.job_id)
