"""Input that is refused, each with its code, its reason, its details, and RetryInfo only where that helps."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from palimpsest.v1 import (
    credits_pb2,
    entity_pb2,
    episode_pb2,
    graph_pb2,
    job_pb2,
    memory_episodes_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
    recall_pb2,
    recall_subgraph_pb2,
)
from tests.builders import on
from tests.doubles.gateway import Refusal
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.talking import USER, Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()
MEBIBYTE = 1024 * 1024


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    folder: Path = tmp_path_factory.mktemp("bad")
    async with a_product(folder, now=lambda: on("2026-08-01")) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    """An empty graph of a tenant of its own."""
    return Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")


async def refused(memory: Memory, said: Any = "Bob joined the team.", **more: Any) -> Refusal:
    """The refusal of AddEpisode, which leaves no trace of it."""
    before = await balance(memory.tenant)
    refusal = await memory.tenant.refused(memory.tenant.memory.AddEpisode, memory.episode(said, **more))
    assert await balance(memory.tenant) == before
    assert not [one for one in await memory.ledger() if one.job_id]
    return refusal


def check_violations(refusal: Refusal, *fields: str) -> None:
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED")
    assert not refusal.retryable
    found = refusal.details["BadRequest"].field_violations
    assert {violation.field for violation in found} == set(fields)
    assert all(violation.description for violation in found)


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", "\u3000\u2003", "\x07", "a\x00b"])
async def test_a_text_without_words_is_refused(memory: Memory, text: str) -> None:
    check_violations(await refused(memory, text), "text")


async def test_no_text_at_all_is_refused(memory: Memory) -> None:
    asked = memory_ingest_pb2.AddEpisodeRequest(
        graph_id="notes", request_id="r", kind=episode_pb2.EPISODE_KIND_CONVERSATION
    )
    refusal = await memory.tenant.refused(memory.tenant.memory.AddEpisode, asked)
    check_violations(refusal, "content")


async def test_messages_without_words_or_speakers_are_each_named(memory: Memory) -> None:
    check_violations(
        await refused(memory, [(USER, ""), (0, "Hello"), (99, "Hello")]),
        "messages.messages[0].text",
        "messages.messages[1].role",
        "messages.messages[2].role",
    )
    check_violations(await refused(memory, []), "messages.messages")


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ({"kind": 0}, ["kind"]),
        ({"kind": episode_pb2.EPISODE_KIND_ASSERTION}, ["kind"]),
        ({"kind": 77}, ["kind"]),
        ({"wait_for": episode_pb2.CHUNK_STAGE_FAILED}, ["wait_for"]),
        ({"wait_for": 77}, ["wait_for"]),
        ({"max_credits_micros": -1}, ["max_credits_micros"]),
        ({"graph_id": ""}, ["graph_id"]),
        ({"graph_id": "g" * 257}, ["graph_id"]),
        ({"request_id": ""}, ["request_id"]),
        ({"request_id": "r" * 65}, ["request_id"]),
        ({"session_id": "a\nb", "kind": 99}, ["session_id", "kind"]),
        ({"time_zone": "not a zone"}, ["time_zone"]),
        ({"time_zone": "Mars/Olympus_Mons"}, ["time_zone"]),
        ({"metadata": {"": "x"}}, ["metadata['']"]),
    ],
)
async def test_fields_that_break_their_rules_are_named(
    memory: Memory, more: dict[str, Any], fields: list[str]
) -> None:
    check_violations(await refused(memory, **more), *fields)


async def test_enums_and_zones_of_other_calls(memory: Memory) -> None:
    await memory.assert_triples(("Ada", "likes", "tea"))
    tenant = memory.tenant
    for field, request in {
        "include[0]": recall_pb2.RecallRequest(graph_ids=["notes"], query="x", include=[77]),  # type: ignore[list-item]
        "query": recall_pb2.RecallRequest(graph_ids=["notes"], query=""),
        "graph_ids": recall_pb2.RecallRequest(query="x"),
        "time_zone": recall_pb2.RecallRequest(graph_ids=["notes"], query="x", time_zone="Etc/Nowhere"),
        "token_budget": recall_pb2.RecallRequest(graph_ids=["notes"], query="x", token_budget=1),
        "max_hops": recall_pb2.RecallRequest(graph_ids=["notes"], query="x", max_hops=5),
    }.items():
        check_violations(await tenant.refused(tenant.recall.Recall, request), field)
    long = recall_pb2.RecallRequest(graph_ids=["notes"], query="x" * 16_385)
    check_violations(await tenant.refused(tenant.recall.Recall, long), "query")
    claim = memory_ingest_pb2.ClaimInput(
        subject=entity_pb2.EntityRef(name="Ada"),
        predicate="likes",
        object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name="tea")),
        valid_at_precision=77,  # type: ignore[arg-type]
        confidence=1.5,
    )
    asked = memory_ingest_pb2.AssertTriplesRequest(graph_id="notes", request_id="r", claims=[claim])
    refusal = await tenant.refused(tenant.memory.AssertTriples, asked)
    check_violations(refusal, "claims[0].valid_at_precision", "claims[0].confidence")
    nothing = memory_ingest_pb2.AssertTriplesRequest(graph_id="notes", request_id="r")
    refusal = await tenant.refused(tenant.memory.AssertTriples, nothing)
    assert refusal.reason == "VALIDATION_FAILED"


@pytest.mark.parametrize(
    "said",
    ["x" * (5 * MEBIBYTE), "é" * (MEBIBYTE + 1), [(USER, "x" * (3 * MEBIBYTE // 2))] * 2],
    ids=["text", "bytes, not characters", "messages together"],
)
async def test_a_text_too_large_is_told_its_size_and_the_limit(memory: Memory, said: Any) -> None:
    refusal = await refused(memory, said)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "DOCUMENT_TOO_LARGE")
    size = len(said.encode()) if isinstance(said, str) else sum(len(text) for _, text in said)
    assert refusal.info.metadata == {"limit": str(2 * MEBIBYTE), "size": str(size)}
    assert len(refusal.details["BadRequest"].field_violations) == 1
    assert not refusal.retryable


READS: Mapping[str, Callable[[Tenant], tuple[Any, Any]]] = {
    "GetGraph": lambda tenant: (tenant.graphs.GetGraph, graph_pb2.GetGraphRequest(graph_id="no")),
    "GetEpisode": lambda tenant: (
        tenant.memory.GetEpisode,
        memory_episodes_pb2.GetEpisodeRequest(graph_id="no", episode_id="e"),
    ),
    "DeleteEpisode": lambda tenant: (
        tenant.memory.DeleteEpisode,
        memory_episodes_pb2.DeleteEpisodeRequest(graph_id="no", episode_id="e", request_id="r"),
    ),
    "GetDocument": lambda tenant: (
        tenant.memory.GetDocument,
        memory_episodes_pb2.GetDocumentRequest(graph_id="no", document_id="d"),
    ),
    "DeleteDocument": lambda tenant: (
        tenant.memory.DeleteDocument,
        memory_episodes_pb2.DeleteDocumentRequest(graph_id="no", document_id="d", request_id="r"),
    ),
    "RetractSource": lambda tenant: (
        tenant.memory.RetractSource,
        memory_episodes_pb2.RetractSourceRequest(graph_id="no", source="s", request_id="r"),
    ),
    "GetStatement": lambda tenant: (
        tenant.memory.GetStatement,
        memory_statements_pb2.GetStatementRequest(graph_id="no", statement_id="s"),
    ),
    "ListStatements": lambda tenant: (
        tenant.memory.ListStatements,
        memory_statements_pb2.ListStatementsRequest(graph_id="no"),
    ),
    "GetTimeline": lambda tenant: (
        tenant.memory.GetTimeline,
        memory_statements_pb2.GetTimelineRequest(
            graph_id="no",
            subject=entity_pb2.EntityRef(name="Ada"),
            predicate=entity_pb2.PredicateRef(name="likes"),
        ),
    ),
    "Recall": lambda tenant: (
        tenant.recall.Recall,
        recall_pb2.RecallRequest(graph_ids=["no"], query="x", min_revision=1),
    ),
    "GetSubgraph": lambda tenant: (
        tenant.recall.GetSubgraph,
        recall_subgraph_pb2.GetSubgraphRequest(graph_id="no", seeds=[entity_pb2.EntityRef(name="Ada")]),
    ),
}


@pytest.mark.parametrize("name", READS)
async def test_a_read_of_a_graph_that_no_write_made(memory: Memory, name: str) -> None:
    refusal = await memory.tenant.refused(*READS[name](memory.tenant))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "GRAPH_NOT_FOUND")
    resource = refusal.details["ResourceInfo"]
    assert (resource.resource_type, resource.resource_name) == ("graph", "no")
    assert not refusal.retryable


async def test_a_bad_key(memory: Memory) -> None:
    good = memory.tenant
    outlines = set()
    for key in (
        "",
        "nonsense",
        "pk_live_0123456789abcdef_" + "0" * 64,
        good.key[:-4] + "0000",
        good.key + "0",
    ):
        intruder = replace(memory, tenant=Tenant(good.name, key, good.channel))
        refusal = await intruder.tenant.refused(good.memory.AddEpisode, intruder.episode("Bob joined."))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAUTHENTICATED, "API_KEY_INVALID")
        assert not refusal.retryable
        outlines.add((refusal.text, str(refusal.info)))
    assert len(outlines) == 1


async def test_no_credits(product: Product) -> None:
    memory = Memory(await product.tenant(f"poor-{next(_numbers)}", micros=999), "notes")
    refusal = await refused(memory)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "INSUFFICIENT_CREDITS")
    assert refusal.info.metadata == {"required": "1000", "available": "999"}
    assert "QuotaFailure" in refusal.details
    assert not refusal.retryable
    graph = graph_pb2.GetGraphRequest(graph_id="notes")
    assert (await memory.tenant.refused(memory.tenant.graphs.GetGraph, graph)).reason == "GRAPH_NOT_FOUND"
    done = await memory.assert_triples(*[("Ada", "likes", f"tea {number}") for number in range(9)])
    assert done.job.credits.spent_micros == 900, "what is within the balance still goes"


async def test_max_credits(memory: Memory) -> None:
    asked = memory.episode("Bob joined the team.", validate_only=True)
    quote = (await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)).quote
    refusal = await refused(memory, max_credits_micros=quote.credits_micros - 1)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "MAX_CREDITS_EXCEEDED")
    maximum = quote.credits_micros - 1
    assert refusal.info.metadata == {"required": str(quote.credits_micros), "maximum": str(maximum)}
    assert not refusal.retryable
    job = await memory.say("Bob joined the team.", max_credits_micros=quote.credits_micros)
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED


async def test_validate_only_quotes_and_leaves_no_trace(memory: Memory) -> None:
    before = await balance(memory.tenant)
    asked = memory.episode("Bob joined the team.", validate_only=True, request_id="same")
    answer = await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)
    assert not answer.HasField("job")
    assert (answer.quote.token_count, answer.quote.chunk_count) == (5, 1)
    assert (answer.quote.credits_micros, answer.quote.available_micros) == (1_000, before[0])
    assert (await balance(memory.tenant), await memory.ledger()) == (before, (await memory.ledger())[-1:])
    graph = graph_pb2.GetGraphRequest(graph_id="notes")
    assert (await memory.tenant.refused(memory.tenant.graphs.GetGraph, graph)).reason == "GRAPH_NOT_FOUND"
    job = await memory.say("Another text.", request_id="same")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED, "the request id is still free"


@pytest.mark.case("same request_id ten times")
async def test_the_same_request_ten_times_is_one_job_and_one_charge(memory: Memory) -> None:
    before = await balance(memory.tenant)
    asked = memory.episode("Bob joined the team.", request_id="same")
    calls = [memory.tenant.call(memory.tenant.memory.AddEpisode, asked) for _ in range(10)]
    answers = await asyncio.gather(*calls)
    assert len({answer.job.job_id for answer in answers}) == 1
    assert sorted(answer.replayed for answer in answers) == [False] + [True] * 9
    job = await memory.end_of(answers[0].job.job_id)
    again = await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)
    assert (again.job.job_id, again.job.state, again.replayed) == (job.job_id, job.state, True)
    assert list(again.job.result.episode_ids) == list(job.result.episode_ids)
    assert len(job.result.episode_ids) == 1
    held = [one for one in await memory.ledger() if one.kind == credits_pb2.LEDGER_ENTRY_KIND_HOLD]
    assert len({one.group_id for one in held}) == 1
    assert await balance(memory.tenant) == (before[0] - job.credits.spent_micros, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"text": "Bob left the team."},
        {"session_id": "s"},
        {"graph_id": "other"},
        {"max_credits_micros": 9_999},
    ],
    ids=["text", "session", "graph", "ceiling"],
)
@pytest.mark.case("same request_id, other text")
async def test_a_request_id_names_one_payload(memory: Memory, change: dict[str, Any]) -> None:
    asked = memory.episode("Bob joined the team.", request_id="same")
    first = await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)
    await memory.end_of(first.job.job_id)
    asked.MergeFrom(memory_ingest_pb2.AddEpisodeRequest(**change))
    refusal = await memory.tenant.refused(memory.tenant.memory.AddEpisode, asked)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    assert refusal.details["ResourceInfo"].resource_name == "same"
    assert not refusal.retryable


@pytest.mark.parametrize("how", [{"wait_for": episode_pb2.CHUNK_STAGE_RESOLVED}, {"validate_only": True}])
async def test_how_an_answer_is_wanted_is_no_other_payload(memory: Memory, how: dict[str, Any]) -> None:
    asked = memory.episode("Bob joined the team.", request_id="same")
    first = await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)
    asked.MergeFrom(memory_ingest_pb2.AddEpisodeRequest(**how))
    again = await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)
    assert again.job.job_id in {"", first.job.job_id}
