"""Erasures and imports whose process dies, or sleeps until another did its work: what is made anew stays.

The graph has its name again by then, and other words in it: what a sleeper would remove, or write, is theirs.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.ingest.durable import hand_over
from gateway.ingest.milestones import Milestone
from gateway.settings import GatewaySettings
from palimpsest.v1 import (
    entity_pb2,
    job_pb2,
    jobs_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
    privacy_pb2,
)
from tests.chaos import working
from tests.chaos.test_crashes import an_installation_on
from tests.chaos.working import GRAPH, Installation, Nursery
from tests.e2e.talking import Memory, day
from tests.e2e.test_carrying import Exported, exported

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

KILLED, STOPPED = int(signal.SIGKILL), int(signal.SIGSTOP)
DATABASES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
ERASING = [
    (Milestone.ERASING, STOPPED),
    (Milestone.EMPTIED, STOPPED),
    (Milestone.EMPTIED, KILLED),
    (Milestone.ERASED, STOPPED),
]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    yield from working.nursery()


@pytest.fixture(params=DATABASES)
async def installation(
    request: pytest.FixtureRequest, tmp_path: Path, nursery: Nursery
) -> AsyncIterator[Installation]:
    async with an_installation_on(request.param, tmp_path, nursery, request) as installation:
        yield installation


def said(request_id: str, *names: str) -> memory_ingest_pb2.AssertTriplesRequest:
    claims = [
        memory_ingest_pb2.ClaimInput(
            subject=entity_pb2.EntityRef(name=name),
            predicate="likes",
            object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name="tea")),
        )
        for name in names
    ]
    return memory_ingest_pb2.AssertTriplesRequest(
        graph_id=GRAPH, request_id=request_id, claims=claims, reference_time=day("2026-01-02")
    )


async def known(installation: Installation) -> tuple[set[Any], dict[str, int], list[Any]]:
    """What is in the graph and in every table, and how the tenant's jobs ended."""
    memory = await installation.memory()
    jobs = await installation.call("jobs", "ListJobs", jobs_pb2.ListJobsRequest())
    told = sorted((one.job_id, one.state) for one in jobs.jobs)
    return {fact[:3] for fact in await memory.facts()}, installation.rows(), told


ERASE = privacy_pb2.EraseGraphRequest(graph_id=GRAPH, request_id="erase")


@pytest.mark.parametrize(("milestone", "fate"), ERASING)
async def test_an_erasure_takes_nothing_of_what_is_made_after_it(
    installation: Installation, milestone: Milestone, fate: int
) -> None:
    first = installation.start("first", [(milestone, 1, fate)])
    await installation.call("memory", "AssertTriples", said("before", "Ada", "Bo"))
    begun = await installation.call("privacy", "EraseGraph", ERASE)
    if fate == STOPPED:
        await first.asleep()
    else:
        await asyncio.to_thread(first.process.wait, working.WAIT_SECONDS)
    installation.start("second")
    settings = GatewaySettings(**installation.settings())
    workflows = settings.url(settings.workflows_url, "workflows.db")
    handed = await asyncio.to_thread(hand_over, workflows, "first")
    assert handed == [begun.erasure.erasure_id]
    done = await installation.end_of(begun.erasure.erasure_id)
    assert done.state == job_pb2.JOB_STATE_SUCCEEDED
    await installation.call("memory", "AssertTriples", said("after", "Cy"))
    before = await known(installation)
    assert before[0] == {("Cy", "likes", "tea")}
    second = installation.worker
    await first.close()  # it wakes, does what it still may, and stops
    assert await known(installation) == before
    assert second is not None
    assert second.lives
    assert await installation.findings() == []


async def importing(memory: Memory, out: Exported, request_id: str) -> job_pb2.Job:
    messages = iter(out.messages(GRAPH, request_id))
    tenant = memory.tenant
    answer = await tenant.privacy.ImportGraph(messages, metadata=tenant.metadata, timeout=300)
    job: job_pb2.Job = answer.job
    return job


@pytest.mark.parametrize("fate", [STOPPED, KILLED])
async def test_an_import_that_was_left_writes_nothing_into_the_one_that_took_its_place(
    installation: Installation, fate: int
) -> None:
    first = installation.start("first", [(Milestone.IMPORTING, 1, fate)])
    await installation.call("memory", "AssertTriples", said("before", "Ada", "Bo"))
    memory = await installation.memory()
    out = await exported(memory)
    erased = await installation.call("privacy", "EraseGraph", ERASE)
    await installation.end_of(erased.erasure.erasure_id)
    left = asyncio.ensure_future(importing(memory, out, "left"))
    if fate == STOPPED:
        await first.asleep()
    else:
        await asyncio.to_thread(first.process.wait, working.WAIT_SECONDS)
    left.cancel()
    installation.lapse()
    installation.start("second")
    memory = await installation.memory()
    assert (await importing(memory, out, "taken over")).state == job_pb2.JOB_STATE_SUCCEEDED
    fact = next(iter(await memory.statements()))
    await installation.call("memory", "EndStatement", ended(fact.statement_id))
    await installation.call("memory", "AssertTriples", said("after", "Cy"))
    before = await known(installation)
    assert len(before[0]) == 3
    await first.close()
    assert await known(installation) == before
    assert await installation.findings() == []


def ended(statement: str) -> memory_statements_pb2.EndStatementRequest:
    return memory_statements_pb2.EndStatementRequest(
        graph_id=GRAPH, statement_id=statement, request_id="end", ended_at=day("2026-02-01"), reason="over"
    )
