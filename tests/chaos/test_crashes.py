"""kill -9 at every milestone: what comes after makes of it what would have been made without, paid once.

And a process that sleeps while another does its work: when it wakes, it changes nothing.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.ingest.durable import hand_over
from gateway.ingest.milestones import Milestone
from gateway.settings import GatewaySettings
from palimpsest.v1 import entity_pb2, episode_pb2, job_pb2, jobs_pb2, memory_episodes_pb2, memory_ingest_pb2
from tests.chaos import working
from tests.chaos.working import GRAPH, Fate, Installation, Nursery, an_installation
from tests.e2e.talking import day

pytestmark = [pytest.mark.timeout(900)]

KILLED, STOPPED = int(signal.SIGKILL), int(signal.SIGSTOP)
LONG = " 7" * 620


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    yield from working.nursery()


def document(request_id: str, *numbers: int) -> memory_ingest_pb2.AddEpisodeRequest:
    """A version of a document: a chunk for each number, each with one fact."""
    return memory_ingest_pb2.AddEpisodeRequest(
        graph_id=GRAPH,
        request_id=request_id,
        kind=episode_pb2.EPISODE_KIND_DOCUMENT,
        document_id="services",
        text="".join(f"Service{number} uses Tool{number}.\n{LONG}\n\n" for number in numbers),
        reference_time=day("2026-01-01"),
    )


def gossip() -> memory_ingest_pb2.AssertTriplesRequest:
    claim = memory_ingest_pb2.ClaimInput(
        subject=entity_pb2.EntityRef(name="Fay"),
        predicate="likes",
        object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name="tea")),
    )
    return memory_ingest_pb2.AssertTriplesRequest(
        graph_id=GRAPH,
        request_id="gossip",
        source="gossip",
        claims=[claim],
        reference_time=day("2026-01-02"),
        wait=False,
    )


async def story(installation: Installation) -> list[str]:
    """A document, of which a chunk fails and is retried, its next version; triples that are retracted."""
    installation.engine.declined = ["Service1 "]
    added = await installation.call("memory", "AddEpisode", document("v1", 0, 1))
    first = await installation.end_of(added.job.job_id)
    assert first.state == job_pb2.JOB_STATE_PARTIAL
    installation.engine.declined = ()
    retry = jobs_pb2.RetryJobRequest(job_id=first.job_id, request_id="retry")
    await installation.call("jobs", "RetryJob", retry)
    assert (await installation.end_of(first.job_id)).state == job_pb2.JOB_STATE_SUCCEEDED
    second = await installation.call("memory", "AddEpisode", document("v2", 1, 2))
    await installation.end_of(second.job.job_id)
    asserted = await installation.call("memory", "AssertTriples", gossip())
    await installation.end_of(asserted.job.job_id)
    asked = memory_episodes_pb2.RetractSourceRequest(graph_id=GRAPH, source="gossip", request_id="retract")
    retracted = await installation.call("memory", "RetractSource", asked)
    await installation.end_of(retracted.job.job_id)
    return [first.job_id, second.job.job_id, asserted.job.job_id, retracted.job.job_id]


@asynccontextmanager
async def an_installation_on(
    database: str, folder: Path, nursery: Nursery, request: pytest.FixtureRequest
) -> AsyncIterator[Installation]:
    urls = (
        (request.getfixturevalue("server_url"), request.getfixturevalue("owner_url"))
        if database == "postgres"
        else ("", "")
    )
    async with an_installation(folder, nursery, *urls) as installation:
        yield installation


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> dict[str, Any]:
    """What is left when nothing happens; the same on every database."""

    async def run() -> dict[str, Any]:
        async with an_installation(tmp_path_factory.mktemp("undisturbed"), nursery) as installation:
            return await installation.left(await story(installation))

    return asyncio.run(run())


async def check(installation: Installation, fates: Sequence[Fate], undisturbed: dict[str, Any]) -> None:
    """The story, with a worker that dies at each fate, leaves what it leaves without."""
    installation.fates = list(fates)
    left = await installation.left(await story(installation))
    assert installation.deaths == len(fates), "each was reached"
    rows, without = left.pop("rows"), dict(undisturbed["rows"])
    assert {name: (rows[name], without[name]) for name in rows if rows[name] != without[name]} == {}
    assert {name: left[name] for name in left if left[name] != undisturbed[name]} == {}
    assert await installation.findings() == []


SAMPLE = [Milestone.ANSWERED, Milestone.SETTLED]
"""In the order of the story: each worker dies at the next."""


@pytest.mark.case("same request_id ten times")
@pytest.mark.parametrize(
    ("database", "milestones"),
    [
        ("sqlite", SAMPLE),
        pytest.param("postgres", [Milestone.RESOLVED], marks=[pytest.mark.postgres, pytest.mark.slow]),
    ],
)
async def test_workers_that_die_one_after_the_other_leave_what_one_would(
    database: str,
    milestones: Sequence[Milestone],
    tmp_path: Path,
    nursery: Nursery,
    undisturbed: dict[str, Any],
    request: pytest.FixtureRequest,
) -> None:
    async with an_installation_on(database, tmp_path, nursery, request) as installation:
        await check(installation, [(one, 1, KILLED) for one in milestones], undisturbed)


POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
ELSEWHERE = {
    Milestone.IMPORTING,
    Milestone.ERASING,
    Milestone.EMPTIED,
    Milestone.ERASED,
    Milestone.ARCHIVED,
}
"""Not of this story: test_sleepers.py cuts these; tests/e2e/test_retaining.py what time begins."""
TIMES = {Milestone.CLAIMED: 2, Milestone.STAGED: 2, Milestone.SETTLING: 2, Milestone.PAID: 2}
"""The second time instead of the first: of a later job, or another chunk."""


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", POSTGRES])
@pytest.mark.parametrize("milestone", [one for one in Milestone if one not in ELSEWHERE])
async def test_a_death_at_any_milestone_changes_nothing_in_the_end(
    database: str,
    milestone: Milestone,
    tmp_path: Path,
    nursery: Nursery,
    undisturbed: dict[str, Any],
    request: pytest.FixtureRequest,
) -> None:
    async with an_installation_on(database, tmp_path, nursery, request) as installation:
        fate = (milestone, TIMES.get(milestone, 1), KILLED)
        await check(installation, [fate], undisturbed)


DAILY = Milestone.ANSWERED
ASLEEP = [
    Milestone.PREPROCESSED,
    Milestone.ANSWERED,
    Milestone.KEPT,
    Milestone.STAGED,
    Milestone.RESOLVED,
    Milestone.SETTLING,
    Milestone.SETTLED,
]


@pytest.mark.parametrize("database", [pytest.param("sqlite", marks=pytest.mark.slow), POSTGRES])
@pytest.mark.parametrize(
    "milestone",
    [pytest.param(one, marks=() if one is DAILY else pytest.mark.slow) for one in ASLEEP],
)
async def test_a_process_that_wakes_after_its_work_was_taken_over_changes_nothing(
    database: str, milestone: Milestone, tmp_path: Path, nursery: Nursery, request: pytest.FixtureRequest
) -> None:
    async with an_installation_on(database, tmp_path, nursery, request) as installation:
        sleeper = installation.start("sleeper", [(milestone, 1, STOPPED)])
        asking = asyncio.ensure_future(installation.call("memory", "AddEpisode", document("v1", 0)))
        await sleeper.asleep()
        asking.cancel()
        installation.start("other")
        added = await installation.call("memory", "AddEpisode", document("v1", 0))
        settings = GatewaySettings(**installation.settings())
        workflows = settings.url(settings.workflows_url, "workflows.db")
        handed = await asyncio.to_thread(hand_over, workflows, "sleeper")
        assert handed == [added.job.job_id]
        ended = await installation.end_of(added.job.job_id)
        assert ended.state == job_pb2.JOB_STATE_SUCCEEDED
        before = await installation.left([added.job.job_id])
        other = installation.worker
        await sleeper.close()  # it wakes, does what it still may, and stops
        assert await installation.left([added.job.job_id]) == before
        assert other is not None
        assert other.lives
        assert before["facts"] == {("Service0", "uses", "Tool0", "2026-01-01", "")}
        assert await installation.findings() == []
