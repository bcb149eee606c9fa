"""DeclarePredicate and ListPredicates as clients see them."""

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import grpc
import pytest
import pytest_asyncio

from palimpsest.v1 import common_pb2, entity_pb2, graph_pb2, memory_ingest_pb2, memory_statements_pb2
from services.llm.offline import OfflineEngine
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, balance, day

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()
SINGLE, MULTI = entity_pb2.CARDINALITY_SINGLE, entity_pb2.CARDINALITY_MULTI


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    async with a_product(tmp_path_factory.mktemp("predicates"), engine=OfflineEngine()) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    return Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")


async def tell(memory: Memory, *triples: tuple[str, str, str, str]) -> None:
    claims = [
        memory_ingest_pb2.ClaimInput(
            subject=entity_pb2.EntityRef(name=subject),
            predicate=predicate,
            object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name=target)),
            valid_at=day(since),
        )
        for subject, predicate, target, since in triples
    ]
    asked = memory_ingest_pb2.AssertTriplesRequest(
        graph_id="notes", request_id=f"told-{next(_numbers)}", claims=claims, reference_time=day("2024-06-01")
    )
    await memory.tenant.call(memory.tenant.memory.AssertTriples, asked)


async def declare(
    memory: Memory, name: str, cardinality: Any, **more: Any
) -> graph_pb2.DeclarePredicateResponse:
    request = graph_pb2.DeclarePredicateRequest(graph_id="notes", name=name, cardinality=cardinality, **more)
    answer: graph_pb2.DeclarePredicateResponse = await memory.tenant.call(
        memory.tenant.graphs.DeclarePredicate, request
    )
    return answer


async def timeline(
    memory: Memory, subject: str, predicate: str, known_at: int = 0
) -> memory_statements_pb2.GetTimelineResponse:
    request = memory_statements_pb2.GetTimelineRequest(
        graph_id="notes",
        subject=entity_pb2.EntityRef(name=subject),
        predicate=entity_pb2.PredicateRef(name=predicate),
    )
    if known_at:
        request.known_at.CopyFrom(common_pb2.KnownAt(revision=known_at))
    answer: memory_statements_pb2.GetTimelineResponse = await memory.tenant.call(
        memory.tenant.memory.GetTimeline, request
    )
    return answer


async def test_what_is_declared_is_believed_from_then_on(memory: Memory) -> None:
    await tell(memory, ("Ann", "mascot", "Otter", "2020-01-01"), ("Ann", "emblem", "Heron", "2022-01-01"))
    paid = await balance(memory.tenant)
    made = await declare(memory, "Mascot", SINGLE, aliases=["emblem"], inverse="mascot of")
    assert (made.predicate.name, list(made.predicate.aliases), made.predicate.inverse) == (
        "mascot",
        ["emblem"],
        "mascot_of",
    )
    assert (made.predicate.declared, made.predicate.revision.revision) == (True, made.revision)
    line = await timeline(memory, "Ann", "emblem")
    assert (line.predicate.name, line.predicate.cardinality) == ("mascot", SINGLE)
    assert [(one.object.entity.name, one.span.HasField("invalid_at")) for one in line.entries] == [
        ("Otter", True),
        ("Heron", False),
    ]
    (turned,) = (await timeline(memory, "Heron", "mascot of")).entries
    assert turned.object.entity.name == "Ann"
    before = await timeline(memory, "Ann", "mascot", made.revision - 1)
    assert [one.span.HasField("invalid_at") for one in before.entries] == [False]
    again = await declare(memory, "mascot", SINGLE, aliases=["emblem"], inverse="mascot_of")
    assert again == made
    assert await balance(memory.tenant) == paid


async def test_a_declaration_makes_its_graph_and_is_listed(memory: Memory) -> None:
    await declare(memory, "call sign", SINGLE)
    own = graph_pb2.ListPredicatesRequest(graph_id="notes", declared_only=True)
    listed = await memory.tenant.call(memory.tenant.graphs.ListPredicates, own)
    assert [one.name for one in listed.predicates] == ["call_sign"]
    every = graph_pb2.ListPredicatesRequest(graph_id="notes", page_size=40)
    names: list[str] = []
    while True:
        page = await memory.tenant.call(memory.tenant.graphs.ListPredicates, every)
        names += [one.name for one in page.predicates]
        every.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert names == sorted(set(names))
    assert {"call_sign", "lives_in", "likes"} <= set(names)
    absent = graph_pb2.ListPredicatesRequest(graph_id="nowhere")
    refusal = await memory.tenant.refused(memory.tenant.graphs.ListPredicates, absent)
    assert refusal.reason == "GRAPH_NOT_FOUND"


async def test_what_contradicts_itself_is_refused_by_its_fields(memory: Memory) -> None:
    await declare(memory, "mentors", MULTI, aliases=["guides"])
    for bad, field in (
        ({"name": "guides", "cardinality": MULTI}, "name"),
        ({"name": "leads on", "cardinality": MULTI, "aliases": ["Guides"]}, "aliases[0]"),
        ({"name": "reports_to", "cardinality": SINGLE, "inverse": "mentors"}, "inverse"),
        ({"name": "wears"}, "cardinality"),
    ):
        request = graph_pb2.DeclarePredicateRequest(graph_id="notes", **bad)
        refusal = await memory.tenant.refused(memory.tenant.graphs.DeclarePredicate, request)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED")
        violations = refusal.details["BadRequest"].field_violations
        assert [one.field for one in violations] == [field]
