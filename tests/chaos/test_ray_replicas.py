"""kill -9 of each service's replica on Ray in the middle of its call: its stage waits, the job ends right."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import grpc.aio
import psutil
import pytest

from palimpsest.v1 import credits_pb2, job_pb2, jobs_pb2
from services.runtime.names import ServiceName
from tests.doubles.product import Tenant
from tests.e2e.talking import Memory, balance
from tests.e2e.up_process import UpProcess

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.milvus, pytest.mark.timeout(400)]

CREDITS = 10_000_000
LOOKS, PAUSE_SECONDS = 600, 0.1

INGEST: Sequence[tuple[ServiceName, str]] = (
    (ServiceName.PREPROCESSOR, "Preprocess"),
    (ServiceName.RECALL, "GatherContext"),
    (ServiceName.EXTRACTOR, "Extract"),
    (ServiceName.CLASSIFIER, "Classify"),
    (ServiceName.RESOLVER, "StoreFacts"),
)
"""The stages of an ingest in order: who does it, and its first call."""


@dataclass
class Scene:
    """One tenant of the product on Ray, and what its replicas have done."""

    up: UpProcess
    memory: Memory

    def replicas(self, service: ServiceName) -> list[psutil.Process]:
        """The processes that serve one service now. Ray names a process by what it runs."""
        return [one for one in self.up.family() if f"ServeReplica:{service}:" in " ".join(one.cmdline())]

    def answered(self, job: str, service: ServiceName, rpc: str) -> bool:
        return any(line.get("rpc") == rpc and line.get("trace") == job for line in self.up.logged(service))

    async def until_answered(self, job: str, service: ServiceName, rpc: str) -> None:
        for _ in range(LOOKS):
            if self.answered(job, service, rpc):
                return
            await asyncio.sleep(PAUSE_SECONDS)
        asked = jobs_pb2.GetJobRequest(job_id=job)
        known = await self.memory.tenant.call(self.memory.tenant.jobs.GetJob, asked)
        told = {one: self.up.logged(one)[-5:] for one in (*ServiceName, "palimpsest")}
        raise AssertionError(f"waited in vain for {service}: {known}\n{told}\n{self.up.output[-5000:]}")


@pytest.fixture
async def scene(on_ray: UpProcess) -> AsyncIterator[Scene]:
    tenant = on_ray.tenant(CREDITS)
    async with grpc.aio.insecure_channel(on_ray.target) as channel:
        yield Scene(on_ray, Memory(Tenant(tenant.id, tenant.key, channel), "mara"))


async def accept(scene: Scene, text: str) -> str:
    accepted = await scene.memory.tenant.call(
        scene.memory.tenant.memory.AddEpisode, scene.memory.episode(text, "2025-01-01")
    )
    return str(accepted.job.job_id)


async def ends_right(scene: Scene, job_id: str) -> None:
    """The job has succeeded, what it learned is there once, and it was paid once."""
    job = await scene.memory.end_of(job_id)
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED, job.error
    assert set((await scene.memory.claims()).values()) == {1}
    assert ("Ana", "lives_in", "Graz") in {fact[:3] for fact in await scene.memory.facts()}
    assert await balance(scene.memory.tenant) == (CREDITS - job.credits.spent_micros, 0)
    entries = await scene.memory.ledger(job_id)
    for kind in (credits_pb2.LEDGER_ENTRY_KIND_HOLD, credits_pb2.LEDGER_ENTRY_KIND_SETTLE):
        assert len({entry.group_id for entry in entries if entry.kind == kind}) == 1


STAGES = [pytest.param(stage, id=service) for stage, (service, _) in enumerate(INGEST[1:], start=1)]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_replica_that_dies_in_its_call_stops_its_stage_alone(scene: Scene, stage: int) -> None:
    service, rpc = INGEST[stage]
    replicas = scene.replicas(service)
    assert replicas, "there is one"
    for replica in replicas:
        os.kill(replica.pid, signal.SIGSTOP)
    try:
        job = await accept(scene, "Ana lives in Graz.")
        before = INGEST[stage - 1]
        await scene.until_answered(job, *before)
        later = [one for one in INGEST[stage:] if scene.answered(job, *one)]
        assert later == [], "what comes after has to wait"
    finally:
        for replica in replicas:
            os.kill(replica.pid, signal.SIGKILL)
    await ends_right(scene, job)
    assert scene.answered(job, service, rpc)
    assert {one.pid for one in scene.replicas(service)}.isdisjoint(one.pid for one in replicas)


async def test_a_preprocessor_that_dies_in_its_call_stops_its_stage_alone(scene: Scene) -> None:
    filler = " ".join(f"Line {number} says that nothing of note was heard." for number in range(120))
    replicas = scene.replicas(ServiceName.PREPROCESSOR)
    job = await accept(scene, f"Ana lives in Graz.\n\n{filler}")
    for replica in replicas:
        os.kill(replica.pid, signal.SIGKILL)
    assert [one for one in INGEST if scene.answered(job, *one)] == [], "killed before it has answered"
    await ends_right(scene, job)


async def test_when_the_head_of_ray_dies_the_job_ends_after_the_restart(scene: Scene) -> None:
    family = [one for one in scene.up.family() if one.pid != scene.up.process.pid]
    old = [one for one in family if "lite" not in " ".join(one.cmdline())]
    (head,) = (one for one in old if one.name() == "gcs_server")
    for replica in scene.replicas(ServiceName.EXTRACTOR):
        os.kill(replica.pid, signal.SIGSTOP)
    job = await accept(scene, "Ana lives in Graz.")
    await scene.until_answered(job, ServiceName.RECALL, "GatherContext")
    os.kill(head.pid, signal.SIGKILL)
    await ends_right(scene, job)
    assert [one for one in old if one.is_running()] == [], "nothing of the dead cluster stays"
