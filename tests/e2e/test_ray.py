"""The product on Ray: five applications in processes of their own, reached by nobody from outside."""

import secrets
from collections.abc import AsyncIterator

import grpc.aio
import pytest

from palimpsest.v1 import job_pb2
from services.runtime.names import ServiceName
from tests.doubles.product import Tenant
from tests.e2e.sockets import beyond_loopback
from tests.e2e.talking import Memory, names
from tests.e2e.traced import orphans, remember
from tests.e2e.up_process import UpProcess

pytestmark = [pytest.mark.ray, pytest.mark.milvus, pytest.mark.timeout(400)]


@pytest.fixture
async def memory(on_ray: UpProcess) -> AsyncIterator[Memory]:
    tenant = on_ray.tenant()
    async with grpc.aio.insecure_channel(on_ray.target) as channel:
        yield Memory(Tenant(tenant.id, tenant.key, channel), "mara")


def pids_of(up: UpProcess, job: str) -> dict[str, set[int]]:
    """The processes in which each service answered a call of a job."""
    return {
        name: {line["pid"] for line in up.logged(name) if line.get("trace") == job} for name in ServiceName
    }


async def test_what_is_asserted_and_said_is_remembered(memory: Memory) -> None:
    await memory.assert_triples(("Mara", "works_at", "Initech"), at="2024-01-01")
    await memory.assert_triples(("Mara", "works_at", "Globex"), at="2025-01-01")
    assert await memory.timeline("Mara", "works_at") == [
        ("Initech", "2024-01-01", "2025-01-01"),
        ("Globex", "2025-01-01", ""),
    ]
    job = await memory.say("Ana lives in Graz.", at="2025-02-01")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    answer = await memory.recall("Where does Ana live?", min_revision=job.revision)
    assert ("Ana", "lives_in", "Graz") in names(answer.facts)


async def test_one_document_passes_through_five_processes(memory: Memory, on_ray: UpProcess) -> None:
    job = await memory.say("Tom works at Initech.", at="2025-02-01")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    pids = pids_of(on_ray, job.job_id)
    assert all(len(found) == 1 for found in pids.values()), pids
    assert len(set.union(*pids.values())) == len(ServiceName)
    children = {process.pid for process in on_ray.family()}
    assert set.union(*pids.values()) < children


async def test_one_document_is_one_trace_through_all_processes(on_ray: UpProcess) -> None:
    _, spans = await remember(on_ray, "traced", secrets.token_hex(16))
    told = {span["resource"]["attributes"]["service.name"] for span in spans}
    assert told == {"palimpsest-gateway", *(f"palimpsest-{name}" for name in ServiceName)}
    assert orphans(spans) == []


async def test_serve_lists_the_five_applications(on_ray: UpProcess) -> None:
    async with grpc.aio.insecure_channel(on_ray.services_target) as channel:
        ask = channel.unary_unary(
            "/ray.serve.RayServeAPIService/ListApplications",
            request_serializer=bytes,
            response_deserializer=bytes,
        )
        listed = await ask(b"")
    # A field of strings: each is a tag, its length, its bytes.
    assert all(bytes([0x0A, len(name)]) + name.encode() in listed for name in ServiceName), listed


def test_no_process_gives_way_to_the_gateway_that_waits_for_it(on_ray: UpProcess) -> None:
    gateway, *others = on_ray.family()
    assert {process.nice() for process in others} == {gateway.nice()}


def test_nothing_listens_beyond_loopback(on_ray: UpProcess) -> None:
    assert beyond_loopback(on_ray.family()) == []
