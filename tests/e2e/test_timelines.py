"""timelines.yaml through AssertTriples and GetTimeline, in every order of arrival, on both databases."""

from collections.abc import Callable, Sequence
from datetime import date
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.convert.times import instant_of, timestamp
from palimpsest.v1 import common_pb2, entity_pb2, memory_ingest_pb2, memory_statements_pb2
from services.domain.instants import Instant
from tests import yaml_files
from tests.builders import on
from tests.doubles.product import Product, Tenant, a_product
from tests.integration.resolving import Clock

CASES = yaml_files.read(Path(__file__).parent.parent / "cases" / "timelines.yaml")
DATED = [case for case in CASES if "assert" in case]
Line = tuple[str, list[Any]]
Row = tuple[str, Instant | None, Instant | None]
Orders = Callable[[list[Line]], list[Sequence[Line]]]


def lines(case: dict[str, Any]) -> list[Line]:
    return [(kind, line) for kind in ("assert", "end", "deny") for line in case.get(kind, ())]


def stamp(day: date | None) -> Timestamp | None:
    return None if day is None else timestamp(on(day.isoformat()))


def entity(name: str) -> entity_pb2.EntityRef:
    return entity_pb2.EntityRef(name=name)


def request(line: Line, graph: str, request_id: str) -> memory_ingest_pb2.AssertTriplesRequest:
    kind, (subject, predicate, target, *times) = line
    triple: dict[str, Any] = {
        "subject": entity(subject),
        "predicate": predicate,
        "object": entity_pb2.ObjectRef(entity=entity(target)),
    }
    asked = memory_ingest_pb2.AssertTriplesRequest(graph_id=graph, request_id=request_id)
    match kind:
        case "assert":
            start, end, said, *more = times
            seen = stamp(more[0]["seen"]) if more else None
            claim = memory_ingest_pb2.ClaimInput(
                **triple,
                valid_at=stamp(start),
                invalid_at=stamp(end),
                seen=seen,
                reference_time=stamp(said),
            )
            asked.claims.append(claim)
        case "end":
            end, said = times
            asked.ends.append(
                memory_ingest_pb2.EndInput(**triple, ended_at=stamp(end), reference_time=stamp(said))
            )
        case _:
            start, until, said = times
            denial = memory_ingest_pb2.DenialInput(
                **triple, denied_from=stamp(start), denied_until=stamp(until), reference_time=stamp(said)
            )
            asked.denials.append(denial)
    return asked


async def timeline(
    tenant: Tenant, graph: str, subject: str, predicate: str, known_at: common_pb2.KnownAt | None = None
) -> list[Row]:
    asked = memory_statements_pb2.GetTimelineRequest(
        graph_id=graph,
        subject=entity(subject),
        predicate=entity_pb2.PredicateRef(name=predicate),
        known_at=known_at,
    )
    answer = await tenant.call(tenant.memory.GetTimeline, asked)
    return [
        (
            entry.object.entity.name,
            instant_of(entry.span.valid_at) if entry.span.HasField("valid_at") else None,
            instant_of(entry.span.invalid_at) if entry.span.HasField("invalid_at") else None,
        )
        for entry in answer.entries
    ]


def at(day: date | None) -> Instant | None:
    return None if day is None else on(day.isoformat())


def check(case: dict[str, Any], spans: Sequence[Row]) -> None:
    if "timeline" in case:
        assert list(spans) == [(name, at(start), at(end)) for name, start, end in case["timeline"]]
    for day, name in case.get("current_on", {}).items():
        now = on(day.isoformat())
        assert [n for n, s, e in spans if (s is None or s <= now) and (e is None or now < e)] == [name]
    if "both_current" in case:
        assert [name for name, _, end in spans if end is None] == case["both_current"]


def listed(told: list[Line]) -> list[Sequence[Line]]:
    return [told]


def every(told: list[Line]) -> list[Sequence[Line]]:
    return list(permutations(told))


async def run_cases(product: Product, clock: Clock, orders: Orders) -> None:
    tenant = await product.tenant("acme")
    for case in DATED:
        told = lines(case)
        subject, predicate = told[0][1][:2]
        for number, order in enumerate(orders(told)):
            graph = f"{case['id']}-{number}"
            for position, line in enumerate(order):
                asked = request(line, graph, f"{graph}-{position}")
                clock.at = on(line[1][5 if line[0] == "assert" else -1].isoformat())
                await tenant.call(tenant.memory.AssertTriples, asked)
            check(case, await timeline(tenant, graph, subject, predicate))
            if number == 0:  # as listed, which is how it was known
                for day, expected in case.get("known_at", {}).items():
                    known_at = common_pb2.KnownAt(time=stamp(day))
                    then = await timeline(tenant, graph, subject, predicate, known_at)
                    assert then == [(name, at(start), at(end)) for name, start, end in expected]


@pytest.mark.slow
@pytest.mark.parametrize("orders", [listed, every], ids=["one order", "every order"])
async def test_the_cases_on_sqlite(tmp_path: Path, orders: Orders) -> None:
    clock = Clock()
    async with a_product(tmp_path, now=clock) as product:
        await run_cases(product, clock, orders)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("orders", [listed, every], ids=["one order", "every order"])
async def test_the_cases_on_postgresql(tmp_path: Path, server_url: str, orders: Orders) -> None:
    clock = Clock()
    async with a_product(tmp_path, url=server_url, now=clock) as product:
        await run_cases(product, clock, orders)
