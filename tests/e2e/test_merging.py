"""MergeEntities and SplitEntity as clients see them."""

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import grpc
import pytest
import pytest_asyncio

from palimpsest.v1 import common_pb2, entity_pb2, memory_entities_pb2, memory_ingest_pb2
from services.llm.offline import OfflineEngine
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, balance, day

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()
NOBODYS = "00000000-0000-5000-8000-000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    async with a_product(tmp_path_factory.mktemp("merging"), engine=OfflineEngine()) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    """A graph that knows one woman by two names."""
    made = Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")
    claims = [
        claim("Maya K.", "lives_in", "Berlin", "2022-01-01"),
        claim("Maya Kapoor", "lives_in", "Lisbon", "2024-01-01"),
        claim("Acme", "is_in", "Lisbon", "2024-01-01", entity_pb2.ENTITY_TYPE_ORGANIZATION),
        claim("Ada", "likes", "tea", "2024-01-01", entity_pb2.ENTITY_TYPE_PERSON),
    ]
    asked = memory_ingest_pb2.AssertTriplesRequest(
        graph_id="notes", request_id="told", claims=claims, reference_time=day("2024-06-01")
    )
    await made.tenant.call(made.tenant.memory.AssertTriples, asked)
    return made


def claim(
    subject: str,
    predicate: str,
    target: str,
    since: str,
    type: entity_pb2.EntityType.ValueType = entity_pb2.ENTITY_TYPE_UNSPECIFIED,
) -> memory_ingest_pb2.ClaimInput:
    return memory_ingest_pb2.ClaimInput(
        subject=entity_pb2.EntityRef(name=subject, type=type),
        predicate=predicate,
        object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name=target)),
        valid_at=day(since),
    )


async def ids(memory: Memory) -> dict[str, str]:
    return {one.subject.name: one.subject.entity_id for one in await memory.statements()}


def merging(into: str, *entities: str, request_id: str = "merge") -> memory_entities_pb2.MergeEntitiesRequest:
    return memory_entities_pb2.MergeEntitiesRequest(
        graph_id="notes", into_entity_id=into, entity_ids=entities, reason="one", request_id=request_id
    )


def splitting(entity: str, request_id: str = "split") -> memory_entities_pb2.SplitEntityRequest:
    return memory_entities_pb2.SplitEntityRequest(
        graph_id="notes", entity_id=entity, reason="two", request_id=request_id
    )


async def test_two_names_are_one_until_they_are_split(memory: Memory) -> None:
    known = await ids(memory)
    short, full = known["Maya K."], known["Maya Kapoor"]
    before, calls = await memory.facts(), memory.tenant.memory
    paid = await balance(memory.tenant)
    merged = await memory.tenant.call(calls.MergeEntities, merging(full, short))
    assert (merged.entity.entity_id, merged.entity.name) == (full, "Maya Kapoor")
    assert list(merged.entity.merged_entity_ids) == [short]
    assert list(merged.entity.aliases) == ["Maya K."]
    home = ("Berlin", "2022-01-01", "2024-01-01")
    assert home in [one[2:] for one in await memory.facts()]
    # By either name, and as it was known before.
    for name in ("Maya K.", "Maya Kapoor"):
        asked = memory_entities_pb2.GetEntityRequest(graph_id="notes", entity=entity_pb2.EntityRef(name=name))
        assert (await memory.tenant.call(calls.GetEntity, asked)).entity.entity_id == full
    then = await memory.timeline("Maya K.", "lives_in", common_pb2.KnownAt(revision=merged.revision - 1))
    assert then == [("Berlin", "2022-01-01", "")]

    assert await memory.tenant.call(calls.MergeEntities, merging(full, short)) == merged
    split = await memory.tenant.call(calls.SplitEntity, splitting(short))
    assert (split.entity.entity_id, split.former_entity.entity_id) == (short, full)
    assert split.entity.merged_into == ""
    assert list(split.former_entity.merged_entity_ids) == []
    assert await memory.facts() == before
    assert await memory.tenant.call(calls.SplitEntity, splitting(short)) == split
    # A repeated call has its first answer, also when others came between.
    assert await memory.tenant.call(calls.MergeEntities, merging(full, short)) == merged
    assert await memory.facts() == before
    assert await balance(memory.tenant) == paid


async def test_what_can_not_be_is_refused(memory: Memory) -> None:
    known, calls = await ids(memory), memory.tenant.memory
    before = await memory.facts()
    refusals: dict[str, list[tuple[Any, Any]]] = {
        "VALIDATION_FAILED": [
            (calls.MergeEntities, merging(known["Ada"], known["Ada"])),
            (calls.MergeEntities, merging(known["Ada"], known["Acme"], request_id="types")),
            (calls.MergeEntities, merging(known["Ada"])),
            (calls.SplitEntity, splitting("")),
        ],
        "ENTITY_NOT_FOUND": [
            (calls.MergeEntities, merging(known["Ada"], NOBODYS)),
            (calls.MergeEntities, merging(NOBODYS, known["Ada"])),
            (calls.MergeEntities, merging("Ada", known["Acme"])),
            (calls.SplitEntity, splitting(NOBODYS)),
        ],
        "NOT_MERGED": [(calls.SplitEntity, splitting(known["Ada"]))],
    }
    for reason, asked in refusals.items():
        for method, request in asked:
            assert (await memory.tenant.refused(method, request)).reason == reason, request
    types = await memory.tenant.refused(
        calls.MergeEntities, merging(known["Ada"], known["Maya K."], known["Acme"])
    )
    assert "entity_ids[1]" in types.text
    assert await memory.facts() == before


async def test_a_request_id_is_of_one_request(memory: Memory) -> None:
    known, calls = await ids(memory), memory.tenant.memory
    full, short = known["Maya Kapoor"], known["Maya K."]
    await memory.tenant.call(calls.MergeEntities, merging(full, short))
    for method, request in (
        (calls.MergeEntities, merging(short, full)),
        (calls.SplitEntity, splitting(short, request_id="merge")),
    ):
        refusal = await memory.tenant.refused(method, request)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")


async def test_a_graph_that_is_not_there(memory: Memory) -> None:
    calls = memory.tenant.memory
    merge, split = merging(NOBODYS, NOBODYS.replace("5", "4")), splitting(NOBODYS)
    merge.graph_id = split.graph_id = "elsewhere"
    for method, request in ((calls.MergeEntities, merge), (calls.SplitEntity, split)):
        assert (await memory.tenant.refused(method, request)).reason == "GRAPH_NOT_FOUND"
