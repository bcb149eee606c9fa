"""Users decide: a wrong belief denied and restored, ends, verdicts, and the log of it all."""

from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf.message import Message

from palimpsest.v1 import memory_statements_pb2, memory_voice_pb2, privacy_pb2, statement_pb2
from tests.builders import on
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, day, day_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()
NOBODYS = "00000000-0000-5000-8000-000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    folder: Path = tmp_path_factory.mktemp("judging")
    async with a_product(folder, now=lambda: on("2026-08-01")) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    """A graph of a tenant of its own, in which two things are known of Ada."""
    memory = Memory(await product.tenant(f"judge-{next(_numbers)}"), "notes")
    await memory.assert_triples(("Ada", "lives_in", "Graz"), at="2025-01-01")
    await memory.assert_triples(("Ada", "likes", "tea"), at="2025-01-02")
    return memory


async def id_of(memory: Memory, predicate: str) -> str:
    (found,) = [one for one in await memory.statements() if one.predicate.name == predicate]
    return found.statement_id


CALLS: Mapping[str, Callable[[str, str, str], Message]] = {
    "EndStatement": lambda graph, id, request: memory_statements_pb2.EndStatementRequest(
        graph_id=graph, statement_id=id, request_id=request
    ),
    "DenyStatement": lambda graph, id, request: memory_statements_pb2.DenyStatementRequest(
        graph_id=graph, statement_id=id, request_id=request
    ),
    "RestoreStatement": lambda graph, id, request: memory_statements_pb2.RestoreStatementRequest(
        graph_id=graph, statement_id=id, request_id=request
    ),
    "JudgePair": lambda graph, id, request: memory_statements_pb2.JudgePairRequest(
        graph_id=graph,
        statement_id=id,
        other_statement_id="other",
        verdict=statement_pb2.VERDICT_KIND_COMPATIBLE,
        request_id=request,
    ),
    "EndVoiceAspect": lambda graph, id, request: memory_voice_pb2.EndVoiceAspectRequest(
        graph_id=graph, voice_aspect_id=id, request_id=request
    ),
    "RestoreVoiceAspect": lambda graph, id, request: memory_voice_pb2.RestoreVoiceAspectRequest(
        graph_id=graph, voice_aspect_id=id, request_id=request
    ),
}


def called(memory: Memory, name: str) -> Any:
    return getattr(memory.tenant.memory, name)


async def audit(memory: Memory, **filters: Any) -> list[privacy_pb2.AuditEvent]:
    """All events, one small page after the other."""
    asked = privacy_pb2.ListAuditEventsRequest(page_size=2, **filters)
    found: list[privacy_pb2.AuditEvent] = []
    while True:
        page = await memory.tenant.call(memory.tenant.privacy.ListAuditEvents, asked)
        found += page.events
        if not page.next_page_token:
            return found
        asked.page_token = page.next_page_token


async def test_a_wrong_belief_is_denied_and_restored(memory: Memory) -> None:
    tenant, id = memory.tenant, await id_of(memory, "lives_in")
    before = await memory.facts()
    denied = await tenant.call(
        tenant.memory.DenyStatement,
        memory_statements_pb2.DenyStatementRequest(
            graph_id="notes", statement_id=id, reason="I never lived there", request_id="deny"
        ),
    )
    assert not denied.statement.spans
    assert denied.statement.HasField("expired_at")
    assert denied.denial.source.origin == statement_pb2.RECORD_ORIGIN_USER
    assert denied.denial.source.reason == "I never lived there"
    assert ("Ada", "lives_in", "Graz", "2025-01-01", "") not in await memory.facts()
    again = await memory.read(id)
    assert [one.source.reason for one in again.denials] == ["I never lived there"]
    restored = await tenant.call(
        tenant.memory.RestoreStatement,
        memory_statements_pb2.RestoreStatementRequest(
            graph_id="notes", statement_id=id, request_id="restore"
        ),
    )
    assert list(restored.revoked_record_ids) == [denied.denial.denial_id]
    assert await memory.facts() == before
    assert (await memory.read(id)).denials[0].source.revoked_at.revision == restored.revision
    events = await audit(memory, target_id=id)
    assert {(one.action, one.request_id, one.reason) for one in events if one.action.islower()} == {
        ("restore_statement", "restore", ""),
        ("deny_statement", "deny", "I never lived there"),
    }
    assert {"DenyStatement", "RestoreStatement"} <= {one.action for one in events}
    assert len({one.key_id for one in events if one.request_id in ("deny", "restore")}) == 1


async def test_an_end_and_the_answer_of_a_repeated_call(memory: Memory) -> None:
    tenant, id = memory.tenant, await id_of(memory, "lives_in")
    asked = memory_statements_pb2.EndStatementRequest(
        graph_id="notes", statement_id=id, ended_at=day("2026-03-01"), request_id="end"
    )
    first = await tenant.call(tenant.memory.EndStatement, asked)
    assert day_of(first.statement, "invalid_at") == day_of(first.end, "ended_at") == "2026-03-01"
    assert first.statement.spans[0].end_cause.origin == statement_pb2.RECORD_ORIGIN_USER
    assert await tenant.call(tenant.memory.EndStatement, asked) == first
    calls = [one for one in await audit(memory) if one.action == "EndStatement"]
    assert [(one.revision, list(one.target_ids)) for one in calls] == [(first.revision, [id])]
    asked.reason = "another"
    refusal = await tenant.refused(tenant.memory.EndStatement, asked)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")


async def test_a_verdict_is_shown_from_both_sides(memory: Memory) -> None:
    await memory.assert_triples(("Ada", "likes", "rum"), at="2025-06-01")
    one, other = [each for each in await memory.statements() if each.predicate.name == "likes"]
    judged = await memory.tenant.call(
        memory.tenant.memory.JudgePair,
        memory_statements_pb2.JudgePairRequest(
            graph_id="notes",
            statement_id=one.statement_id,
            other_statement_id=other.statement_id,
            verdict=statement_pb2.VERDICT_KIND_CONTRADICTS,
            reason="never both",
            request_id="judge",
        ),
    )
    assert {each.statement_id for each in judged.statements} == {one.statement_id, other.statement_id}
    assert (judged.verdict.decided_by, judged.verdict.reason) == (
        statement_pb2.VERDICT_SOURCE_USER,
        "never both",
    )
    (seen,) = (await memory.read(other.statement_id)).verdicts
    assert (seen.verdict_id, seen.other_statement_id) == (judged.verdict.verdict_id, one.statement_id)
    assert ("Ada", "likes", "tea", "2025-01-02", "2025-06-01") in await memory.facts()


@pytest.mark.parametrize("name", CALLS)
async def test_what_is_not_there(memory: Memory, product: Product, name: str) -> None:
    tenant, make = memory.tenant, CALLS[name]
    refusal = await tenant.refused(called(memory, name), make("no", NOBODYS, "r-graph"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "GRAPH_NOT_FOUND")
    reason = "VOICE_ASPECT_NOT_FOUND" if "Voice" in name else "STATEMENT_NOT_FOUND"
    stranger = Memory(await product.tenant(f"stranger-{next(_numbers)}"), "notes")
    await stranger.assert_triples(("Bob", "likes", "jam"))
    theirs = await id_of(memory, "likes")
    for asker, id in ((memory, NOBODYS), (stranger, theirs), (memory, "`) or true")):
        refusal = await asker.tenant.refused(called(asker, name), make("notes", id, f"r-{next(_numbers)}"))
        if id.startswith("`"):
            assert refusal.reason == "VALIDATION_FAILED"
        else:
            assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, reason)
    assert ("Ada", "likes", "tea", "2025-01-02", "") in await memory.facts()
    assert not [one for one in await audit(memory) if one.action == name], "what failed changed nothing"


@pytest.mark.parametrize("name", CALLS)
async def test_fields_that_break_their_rules_are_named(memory: Memory, name: str) -> None:
    asked: Any = CALLS[name]("notes", "x", "")
    asked.reason = "a\x00"
    refusal = await memory.tenant.refused(called(memory, name), asked)
    assert refusal.reason == "VALIDATION_FAILED"
    fields = {violation.field for violation in refusal.details["BadRequest"].field_violations}
    assert {"request_id", "reason"} <= fields


async def test_times_that_cannot_be(memory: Memory) -> None:
    id = await id_of(memory, "likes")
    asked = memory_statements_pb2.DenyStatementRequest(
        graph_id="notes",
        statement_id=id,
        denied_from=day("2025-02-01"),
        denied_until=day("2025-02-01"),
        request_id="r",
    )
    refusal = await memory.tenant.refused(memory.tenant.memory.DenyStatement, asked)
    assert refusal.reason == "VALIDATION_FAILED"
    pair = CALLS["JudgePair"]("notes", "other", "r")
    refusal = await memory.tenant.refused(memory.tenant.memory.JudgePair, pair)
    assert refusal.reason == "VALIDATION_FAILED", "a statement and itself"


async def test_the_log_is_the_tenants_own_and_pages(memory: Memory, product: Product) -> None:
    stranger = Memory(await product.tenant(f"other-{next(_numbers)}"), "notes")
    await stranger.assert_triples(("Bob", "likes", "jam"))
    await Memory(memory.tenant, "more").assert_triples(("Ada", "likes", "rum"))
    events = await audit(memory)
    ids = [one.event_id for one in events]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == len(ids)
    assert {one.graph_id for one in events} == {"notes", "more"}
    assert [one.action for one in events].count("AssertTriples") == 3
    assert [one.action for one in events].count("assert_triples") == 3
    assert {one.graph_id for one in await audit(memory, graph_id="more")} == {"more"}
    asserted = await audit(memory, action="assert_triples")
    assert {one.action for one in asserted} == {"assert_triples"}
    assert not {one.event_id for one in await audit(stranger)} & set(ids)
    assert await audit(memory, created_until=day("2020-01-01")) == []
    whole = await audit(memory, created_from=day("2020-01-01"))
    assert len(whole) == len(ids)
    refusal = await stranger.tenant.refused(
        stranger.tenant.privacy.ListAuditEvents, privacy_pb2.ListAuditEventsRequest(graph_id="more")
    )
    assert refusal.reason == "GRAPH_NOT_FOUND"
    first = await memory.tenant.call(
        memory.tenant.privacy.ListAuditEvents, privacy_pb2.ListAuditEventsRequest(page_size=1)
    )
    foreign = privacy_pb2.ListAuditEventsRequest(page_size=1, page_token=first.next_page_token)
    refusal = await stranger.tenant.refused(stranger.tenant.privacy.ListAuditEvents, foreign)
    assert refusal.reason == "VALIDATION_FAILED"
