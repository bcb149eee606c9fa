"""Deleting documents, versions and sources: what is believed then is as if they had never been given."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from gateway.convert.times import instant_of
from palimpsest.v1 import episode_pb2, job_pb2, memory_episodes_pb2
from services.domain.scope import TenantId
from services.llm import tokens
from services.llm.openai_engine import OpenAIEngine
from services.stores.vectors.port import Collection
from tests.builders import on
from tests.doubles.gateway import Refusal, graph
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Fact, Memory

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = episode_pb2.EPISODE_KIND_DOCUMENT
_numbers = count()

ALL = "# Services\n\nAtlas uses MySQL.\n\nBorealis uses Loki.\n\nKite uses Redis.\n"
LESS = "# Services\n\nAtlas uses MySQL.\n\nKite uses Redis.\n"
MORE = "# Services\n\nAtlas uses MySQL.\n\nKite uses Redis.\n\nZephyr uses Kafka.\n"
LAST = "# Services\n\nAtlas uses MySQL.\n\nBorealis uses Loki.\n\nZephyr uses Kafka.\n"
DAYS = ("2026-01-10", "2026-02-20", "2026-03-30", "2026-04-15")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        folder: Path = tmp_path_factory.mktemp("deleting")
        async with a_product(folder, engine, now=lambda: on("2026-08-01T12:00:00")) as product:
            yield product
        await engine.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    """An empty graph of a tenant of its own."""
    return Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")


async def write(memory: Memory, text: str, at: str, document: str = "services", **more: Any) -> job_pb2.Job:
    job = await memory.say(text, at, kind=DOCUMENT, document_id=document, **more)
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    return job


async def read(memory: Memory, version: int = 0) -> memory_episodes_pb2.GetDocumentResponse:
    asked = memory_episodes_pb2.GetDocumentRequest(
        graph_id=memory.graph, document_id="services", version=version
    )
    answer: memory_episodes_pb2.GetDocumentResponse = await memory.tenant.call(
        memory.tenant.memory.GetDocument, asked
    )
    return answer


async def delete(
    memory: Memory, version: int = 0, request_id: str = ""
) -> memory_episodes_pb2.DeleteDocumentResponse:
    asked = memory_episodes_pb2.DeleteDocumentRequest(
        graph_id=memory.graph,
        document_id="services",
        version=version,
        request_id=request_id or memory.tenant.request_id(),
    )
    answer: memory_episodes_pb2.DeleteDocumentResponse = await memory.tenant.call(
        memory.tenant.memory.DeleteDocument, asked
    )
    return answer


async def retract(memory: Memory, source: str, request_id: str = "") -> job_pb2.Job:
    asked = memory_episodes_pb2.RetractSourceRequest(
        graph_id=memory.graph, source=source, request_id=request_id or memory.tenant.request_id()
    )
    answer = await memory.tenant.call(memory.tenant.memory.RetractSource, asked)
    return await memory.end_of(answer.job.job_id)


async def test_a_document_is_read_in_every_version(memory: Memory) -> None:
    for text, at in zip((ALL, LESS), DAYS, strict=False):
        await write(memory, text, at, title=f"As of {at}", source="wiki")
    newest = await read(memory)
    assert (newest.text, newest.version.version) == (LESS, 2)
    assert (await read(memory, 1)).text == ALL
    assert [one.version for one in newest.document.versions] == [2, 1]
    assert (newest.document.title, newest.document.source) == (f"As of {DAYS[1]}", "wiki")
    (second, first) = newest.document.versions
    assert (first.size_bytes, first.token_count) == (len(ALL.encode()), tokens.count(ALL))
    assert (first.tokens_saved, second.tokens_saved) == (0, tokens.count(LESS))
    assert [instant_of(one.reference_time) for one in (first, second)] == [on(at) for at in DAYS[:2]]


async def never_given(product: Product, left: list[tuple[str, str]]) -> set[Fact]:
    """What a graph believes that was given only these versions."""
    other = Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")
    for text, at in left:
        await write(other, text, at)
    return await other.facts()


@pytest.mark.parametrize("version", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 4))])
async def test_a_deleted_version_might_as_well_not_have_been_given(
    product: Product, memory: Memory, version: int
) -> None:
    given = list(zip((ALL, LESS, MORE, LAST), DAYS, strict=True))
    for text, at in given:
        await write(memory, text, at)
    await delete(memory, version)
    left = [one for number, one in enumerate(given, 1) if number != version]
    assert await memory.facts() == await never_given(product, left)
    newest = await read(memory)
    assert newest.text == left[-1][0]
    assert [one.version for one in newest.document.versions] == [n for n in (4, 3, 2, 1) if n != version]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await read(memory, version)
    assert Refusal.of(refused.value).reason == "DOCUMENT_NOT_FOUND"


async def test_deleting_the_newest_version_brings_back_what_it_ended_though_it_said_nothing(
    memory: Memory,
) -> None:
    await write(memory, ALL, DAYS[0])
    before = await memory.facts()
    job = await write(memory, LESS, DAYS[1])
    assert not job.chunks, "it says nothing that is new"
    (ended,) = [one for one in await memory.statements() if one.HasField("invalid_at")]
    caused = await memory.read_episode(ended.invalidated_by)
    assert (caused.text, caused.episode.document_version) == ("", 2)
    gone = await delete(memory, 2)
    assert (gone.counts.ends_revoked, gone.counts.statements_restored) == (1, 1)
    assert await memory.facts() == before
    # And it is known what the document says now: given again, the same version is one again.
    again = await write(memory, LESS, DAYS[2])
    assert again.result.document_version == 3, "no number is given twice"
    assert ("Borealis", "uses", "Loki", DAYS[0], DAYS[2]) in await memory.facts()


async def test_what_another_source_says_holds_until_that_is_deleted(memory: Memory) -> None:
    said = await memory.say("Borealis uses Loki.", DAYS[0])
    await write(memory, ALL, DAYS[0])
    await write(memory, LESS, DAYS[1])
    assert ("Borealis", "uses", "Loki", DAYS[0], "") in await memory.facts()
    await memory.delete(said.result.episode_ids[0])
    assert ("Borealis", "uses", "Loki", DAYS[0], DAYS[1]) in await memory.facts()


async def test_a_deleted_document_leaves_nothing_and_is_learned_again(
    product: Product, memory: Memory
) -> None:
    for text, at in zip((ALL, LESS, MORE), DAYS, strict=False):
        await write(memory, text, at)
    once = memory.tenant.request_id()
    gone = await delete(memory, request_id=once)
    assert (gone.counts.claims_revoked, gone.counts.statements_expired) == (4, 4)
    assert await memory.facts() == set()
    vectors = product.resources.vectors
    scope = graph(TenantId(memory.tenant.name), "notes")
    assert [await vectors.count(scope, one) for one in (Collection.PASSAGES, Collection.STATEMENTS)] == [0, 0]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await read(memory)
    assert Refusal.of(refused.value).reason == "DOCUMENT_NOT_FOUND"
    assert await delete(memory, request_id=once) == gone
    nothing = memory_episodes_pb2.DeletionCounts()
    assert (await delete(memory)).counts == nothing, "there is nothing left to delete"
    await write(memory, ALL, DAYS[3])
    assert {fact[3] for fact in await memory.facts()} == {DAYS[3]}
    assert len(await memory.facts()) == 3


@pytest.mark.slow
async def test_a_retracted_source_might_as_well_not_have_spoken(product: Product, memory: Memory) -> None:
    """Its document is said by another as well: what that says too stays, as that says it."""
    await memory.say("Ivo lives in Graz.", DAYS[0], source="diary")
    await memory.say("Ivo moved to Linz.", DAYS[1], source="gossip")
    await write(memory, ALL, DAYS[0], source="gossip")
    await write(memory, LESS, DAYS[1], source="wiki")
    job = await retract(memory, "gossip", "retract")
    assert (job.kind, job.state) == (job_pb2.JOB_KIND_RETRACTION, job_pb2.JOB_STATE_SUCCEEDED)
    assert (job.result.counts.episodes_deleted, job.credits.spent_micros) == (2, 0)
    assert job.result.counts.claims_revoked == 2, "what is said anew is not gone"
    assert job.revision == max(job.revision, 1)
    other = Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")
    await other.say("Ivo lives in Graz.", DAYS[0], source="diary")
    await write(other, LESS, DAYS[1], source="wiki")
    assert await memory.facts() == await other.facts()
    # Named again, it is the same job; and no other can be made of nothing.
    assert (await retract(memory, "gossip", "retract")).job_id == job.job_id
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await retract(memory, "gossip")
    assert Refusal.of(refused.value).reason == "SOURCE_NOT_FOUND"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await retract(memory, "diary", "retract")
    assert Refusal.of(refused.value).reason == "REQUEST_ID_REUSED"


NO_SUCH = {
    "a document that never was": {"document_id": "no such"},
    "a version that never was": {"document_id": "services", "version": 7},
}


@pytest.mark.parametrize("asked", NO_SUCH.values(), ids=NO_SUCH)
async def test_what_never_was_is_not_deleted(memory: Memory, asked: dict[str, Any]) -> None:
    await write(memory, ALL, DAYS[0])
    before = await memory.facts()
    for call, request in (
        (memory.tenant.memory.GetDocument, memory_episodes_pb2.GetDocumentRequest(**asked)),
        (
            memory.tenant.memory.DeleteDocument,
            memory_episodes_pb2.DeleteDocumentRequest(**asked, request_id=memory.tenant.request_id()),
        ),
    ):
        request.graph_id = memory.graph
        refusal = await memory.tenant.refused(call, request)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "DOCUMENT_NOT_FOUND")
        assert not refusal.retryable
    assert await memory.facts() == before


async def test_a_request_id_names_one_deletion(memory: Memory) -> None:
    await write(memory, ALL, DAYS[0])
    await write(memory, LESS, DAYS[1])
    await delete(memory, 2, "once")
    other = memory_episodes_pb2.DeleteDocumentRequest(
        graph_id=memory.graph, document_id="services", version=1, request_id="once"
    )
    refusal = await memory.tenant.refused(memory.tenant.memory.DeleteDocument, other)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    assert len(await memory.facts()) == 3


async def test_many_episodes_go_in_parts_of_a_job(memory: Memory) -> None:
    lines = [("Fay", "likes", f"thing {number}") for number in range(5)]
    for at in DAYS:
        await memory.assert_triples(*lines, at=at, source="sheet")
    job = await retract(memory, "sheet")
    assert (job.result.counts.episodes_deleted, job.result.counts.claims_revoked) == (4, 20)
    assert len(job.result.expired_statement_ids) == 5
    assert await memory.facts() == set()


@pytest.mark.slow
async def test_deletions_at_once_are_each_done_once(memory: Memory) -> None:
    for text, at in zip((ALL, LESS, MORE), DAYS, strict=False):
        await write(memory, text, at)
    answers = await asyncio.gather(*(delete(memory, version) for version in (1, 2, 3, 1)))
    assert sum(one.counts.episodes_deleted for one in answers) >= 3
    assert await memory.facts() == set()
