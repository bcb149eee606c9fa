"""Edges of the public calls: repeats, pages, revisions, literals, notes, failures, what a deletion counts."""

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import grpc
import pytest
import pytest_asyncio

from gateway.credits.audit import audit
from palimpsest.v1 import (
    common_pb2,
    entity_pb2,
    episode_pb2,
    job_pb2,
    memory_episodes_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
)
from services.llm.offline import OfflineEngine
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, balance, day, day_of, object_name

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    async with a_product(tmp_path_factory.mktemp("edges"), engine=OfflineEngine()) as product:
        yield product
        stores = product.running.gateway.stores
        assert await audit(stores.ledger_database, stores.clock) == []


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    """An empty graph of a tenant of its own."""
    return Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")


def entity(name: str) -> entity_pb2.EntityRef:
    return entity_pb2.EntityRef(name=name)


def statement_clock(read: memory_statements_pb2.GetStatementResponse) -> common_pb2.RevisionStamp:
    """The revision, and its time, that first believed the statement."""
    return read.statement.spans[0].known_from


def claim(target: str | entity_pb2.Literal, **more: Any) -> memory_ingest_pb2.ClaimInput:
    named = (
        entity_pb2.ObjectRef(entity=entity(target))
        if isinstance(target, str)
        else entity_pb2.ObjectRef(literal=target)
    )
    given: dict[str, Any] = {"subject": entity("Fay"), "predicate": "likes", "object": named}
    return memory_ingest_pb2.ClaimInput(**(given | more))


def triples(memory: Memory, *claims: Any, **more: Any) -> memory_ingest_pb2.AssertTriplesRequest:
    named: dict[str, Any] = {"graph_id": memory.graph, "request_id": memory.tenant.request_id()}
    return memory_ingest_pb2.AssertTriplesRequest(**(named | more), claims=claims)


async def tell(memory: Memory, *claims: Any, **more: Any) -> memory_ingest_pb2.AssertTriplesResponse:
    asked = triples(memory, *claims, **more)
    answer: memory_ingest_pb2.AssertTriplesResponse = await memory.tenant.call(
        memory.tenant.memory.AssertTriples, asked
    )
    return answer


async def test_a_repeated_assertion_answers_the_same_and_costs_nothing(memory: Memory) -> None:
    claims = [claim("tea", reference_time=day("2025-02-01")), claim("rum", reference_time=day("2025-01-01"))]
    asked = triples(memory, *claims, claim("tea", reference_time=day("2025-02-01")))
    first = await memory.tenant.call(memory.tenant.memory.AssertTriples, asked)
    left = await balance(memory.tenant)
    again = await memory.tenant.call(memory.tenant.memory.AssertTriples, asked)
    assert (first.replayed, again.replayed) == (False, True)
    again.replayed = False
    assert again == first
    assert await balance(memory.tenant) == left
    # Episodes in order of time; each claim names its own.
    early, late = first.episodes
    assert [one.episode_id for one in first.claims] == [late.episode_id, early.episode_id, late.episode_id]
    assert first.claims[0].statement_id == first.claims[2].statement_id
    assert first.job.result.counts.claims_added == 3


async def test_an_assertion_in_the_background_ends_as_one_that_is_waited_for(memory: Memory) -> None:
    asked = triples(memory, *(claim(f"dish {n}") for n in range(1000)), wait=False)
    accepted = await memory.tenant.call(memory.tenant.memory.AssertTriples, asked)
    assert not accepted.claims
    job = await memory.end_of(accepted.job.job_id)
    counts = job.result.counts
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    assert (counts.claims_added, counts.statements_added, counts.entities_added) == (1000, 1000, 1001)
    # Counts are whole where ids are cut.
    assert (len(job.result.added_entity_ids), job.result.ids_truncated) == (1000, True)
    asked.wait = True
    answer = await memory.tenant.call(memory.tenant.memory.AssertTriples, asked)
    assert (answer.replayed, len(answer.claims), answer.revision) == (True, 1000, job.revision)
    assert (job.credits.spent_micros, job.credits.refunded_micros) == (1000 * 100, 0)


async def test_a_failed_assertion_is_paid_back_and_asks_for_no_repeat(memory: Memory) -> None:
    before = await balance(memory.tenant)
    unknown = entity_pb2.EntityRef(entity_id="6f0e3c1e-6d9c-5f0a-8a51-0d4c7c1b9f42")
    asked = triples(memory, claim("tea", subject=unknown))
    for _ in range(2):
        refusal = await memory.tenant.refused(memory.tenant.memory.AssertTriples, asked)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "ENTITY_NOT_FOUND")
        assert not refusal.retryable
    assert await balance(memory.tenant) == before
    listed = memory_episodes_pb2.ListEpisodesRequest(graph_id=memory.graph)
    assert not (await memory.tenant.call(memory.tenant.memory.ListEpisodes, listed)).episodes
    assert not (await memory.recall("Who likes tea?")).passages, "nothing of it is kept"


async def test_pages_of_a_list_read_the_revision_of_the_first(memory: Memory) -> None:
    await tell(memory, *(claim(f"dish {n}", valid_at=day(f"2024-01-0{n}")) for n in (2, 4, 6)))
    asked = memory_statements_pb2.GetTimelineRequest(
        graph_id=memory.graph,
        subject=entity("Fay"),
        predicate=entity_pb2.PredicateRef(name="likes"),
        page_size=2,
    )
    first = await memory.tenant.call(memory.tenant.memory.GetTimeline, asked)
    listing = memory_statements_pb2.ListStatementsRequest(graph_id=memory.graph, page_size=2)
    listed = await memory.tenant.call(memory.tenant.memory.ListStatements, listing)
    # Between two pages something earlier is learnt, which would move all that follows.
    await tell(memory, claim("dish 1", valid_at=day("2024-01-01")))
    asked.page_token, listing.page_token = first.next_page_token, listed.next_page_token
    second = await memory.tenant.call(memory.tenant.memory.GetTimeline, asked)
    names = [object_name(entry.object) for entry in (*first.entries, *second.entries)]
    assert names == ["dish 2", "dish 4", "dish 6"]
    assert (second.revision, second.next_page_token) == (first.revision, "")
    rest = await memory.tenant.call(memory.tenant.memory.ListStatements, listing)
    assert (len(rest.statements), rest.revision, rest.next_page_token) == (1, listed.revision, "")


@pytest.mark.parametrize(
    ("given", "spelt"),
    [
        (entity_pb2.Literal(number_value=42), entity_pb2.Literal(number_value=42.0)),
        (entity_pb2.Literal(number_value=1e21), entity_pb2.Literal(number_value=1e21)),
        (entity_pb2.Literal(time_value=day("2024-02-29")), entity_pb2.Literal(time_value=day("2024-02-29"))),
        (entity_pb2.Literal(bool_value=False), entity_pb2.Literal(bool_value=False)),
        (entity_pb2.Literal(string_value="a  b"), entity_pb2.Literal(string_value="a b")),
    ],
)
async def test_a_literal_is_found_and_shown_as_it_was_given(
    memory: Memory, given: entity_pb2.Literal, spelt: entity_pb2.Literal
) -> None:
    await tell(memory, claim(given), claim(entity_pb2.Literal(string_value="other")))
    (found,) = await memory.statements(object=entity_pb2.ObjectRef(literal=given))
    assert found.object.literal == spelt


async def test_notes_and_precisions_come_back_as_they_were_given(memory: Memory) -> None:
    notes = {"channel": "mail", "naïve": "ünïcode 漢字", "empty": ""}
    job = await memory.say("My sister Ann lives in Graz.", "2025-01-01", metadata=notes)
    read = await memory.read_episode(job.chunks[0].episode_id)
    assert dict(read.episode.metadata) == notes

    year, month = common_pb2.PRECISION_YEAR, common_pb2.PRECISION_MONTH
    coarse = claim(
        "tea",
        valid_at=day("2022-01-01"),
        valid_at_precision=year,
        invalid_at=day("2023-03-01"),
        invalid_at_precision=month,
        seen=day("2022-06-01"),
        confidence=0.5,
        fact="Fay liked tea for a year or so.",
        quote="She drank tea for a year or so.",
        reference_time=day("2024-01-01"),
    )
    told = await tell(memory, coarse)
    read_back = await memory.read(told.claims[0].statement_id)
    (record,) = read_back.claims
    assert (record.start_precision, record.end_precision) == (year, month)
    assert [day_of(record, name) for name in ("start", "end", "seen")] == [
        "2022-01-01",
        "2023-03-01",
        "2022-06-01",
    ]
    assert (record.source.quote, record.source.confidence) == (coarse.quote, 0.5)
    assert record.source.recorded_at == statement_clock(read_back)
    statement = read_back.statement
    assert (statement.fact, statement.valid_at_precision) == (coarse.fact, year)
    (span,) = statement.spans
    assert (span.valid_at_precision, span.invalid_at_precision) == (year, month)


async def test_a_coarse_end_in_the_year_of_its_start_is_the_end_of_that_year(memory: Memory) -> None:
    await tell(
        memory,
        claim(
            "tea",
            valid_at=day("2023-03-01"),
            invalid_at=day("2023-01-01"),
            invalid_at_precision=common_pb2.PRECISION_YEAR,
        ),
    )
    assert await memory.timeline("Fay", "likes") == [("tea", "2023-03-01", "2024-01-01")]


async def test_a_denial_without_dates_takes_all_that_was_said_before(memory: Memory) -> None:
    await tell(memory, claim("tea", valid_at=day("2023-03-01"), reference_time=day("2024-01-01")))
    denial = memory_ingest_pb2.DenialInput(
        subject=entity("Fay"),
        predicate="likes",
        object=entity_pb2.ObjectRef(entity=entity("tea")),
        reference_time=day("2024-02-01"),
    )
    asked = triples(memory)
    asked.denials.append(denial)
    await memory.tenant.call(memory.tenant.memory.AssertTriples, asked)
    assert await memory.timeline("Fay", "likes") == []
    await tell(memory, claim("tea", valid_at=day("2024-03-01"), reference_time=day("2024-03-01")))
    assert await memory.timeline("Fay", "likes") == [("tea", "2024-03-01", "")]


async def test_revision_zero_knows_nothing(memory: Memory) -> None:
    told = await tell(memory, claim("tea"))
    assert await memory.statements(known_at=common_pb2.KnownAt(revision=0)) == []
    assert await memory.statements(known_at=common_pb2.KnownAt(time=day("1970-01-01"))) == []
    refusal = await memory.tenant.refused(
        memory.tenant.memory.GetStatement,
        memory_statements_pb2.GetStatementRequest(
            graph_id=memory.graph,
            statement_id=told.claims[0].statement_id,
            known_at=common_pb2.KnownAt(revision=0),
        ),
    )
    assert refusal.reason == "STATEMENT_NOT_FOUND"


async def test_a_deletion_counts_what_it_takes_and_gives_back(memory: Memory) -> None:
    works: dict[str, Any] = {"predicate": "works_at"}
    await tell(memory, claim("Atlas", valid_at=day("2020-01-01"), **works), reference_time=day("2020-01-01"))
    told = await tell(
        memory,
        claim("Initech", valid_at=day("2023-01-01"), **works),
        claim("tea", valid_at=day("2021-01-01"), invalid_at=day("2022-01-01")),
        reference_time=day("2023-01-01"),
    )
    gone = await memory.delete(told.episodes[0].episode_id)
    counts = gone.counts
    assert (counts.episodes_deleted, counts.passages_removed, counts.claims_revoked) == (1, 2, 2)
    assert (counts.statements_expired, counts.statements_restored) == (2, 1)
    assert set(gone.expired_statement_ids) == {one.statement_id for one in told.claims}
    assert await memory.timeline("Fay", "works_at") == [("Atlas", "2020-01-01", "")]
    (revoked,) = (await memory.read(told.claims[0].statement_id)).claims
    assert revoked.source.revoked_at.revision == gone.revision
    assert revoked.source.revoked_at.time.seconds > revoked.source.recorded_at.time.seconds - 1 > 0


async def test_small_talk_is_paid_back_whole(memory: Memory) -> None:
    job = await memory.say("Hi! How are you? Lovely weather.", "2025-01-01")
    assert (job.state, job.result.counts.nothing_chunks) == (job_pb2.JOB_STATE_SUCCEEDED, 1)
    assert job.chunks[0].stage == episode_pb2.CHUNK_STAGE_NOTHING
    assert job.credits.spent_micros == 0 < job.credits.refunded_micros
