"""kill -9 at every milestone of a rereading: what comes after makes of it what one run would have made."""

import asyncio
import signal
from typing import Any

import pytest

from gateway.ingest.milestones import Milestone
from palimpsest.v1 import job_pb2, memory_graph_pb2
from tests.chaos.test_crashes import document
from tests.chaos.test_crashes import nursery as nursery
from tests.chaos.working import GRAPH, Installation, Nursery, an_installation

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

FATES = [
    (Milestone.CLAIMED, 1),
    (Milestone.ANSWERED, 2),
    (Milestone.KEPT, 2),
    (Milestone.RESOLVED, 2),
    (Milestone.PAID, 1),
    (Milestone.SETTLING, 1),
    (Milestone.SETTLED, 1),
    (Milestone.CLAIMED, 2),
    (Milestone.RESOLVED, 4),
]
"""When the worker dies: of two texts that are read anew, which is undone after."""


async def story(installation: Installation, fate: tuple[Milestone, int] | None = None) -> dict[str, Any]:
    """Two texts that were misread are read anew, and that is undone, by workers of which the first dies."""
    installation.engine.misread = {"Tool0": "Fool0", "Tool1": "Fool1"}
    added = await installation.call("memory", "AddEpisode", document("v1", 0, 1))
    assert (await installation.end_of(added.job.job_id)).state == job_pb2.JOB_STATE_SUCCEEDED
    installation.engine.misread = {}
    if fate is not None:
        assert installation.worker is not None
        await installation.worker.close()
        installation.deaths -= 1
        installation.fates = [(*fate, int(signal.SIGKILL))]
    asked = memory_graph_pb2.RebuildGraphRequest(graph_id=GRAPH, request_id="anew", prompt_version="current")
    anew = await installation.call("memory", "RebuildGraph", asked)
    job = await installation.end_of(anew.job.job_id)
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    memory = await installation.memory()
    assert {fact[2] for fact in await memory.facts()} == {"Tool0", "Tool1"}
    undo = memory_graph_pb2.RebuildGraphRequest(graph_id=GRAPH, request_id="undo", undo_job_id=job.job_id)
    undone = await installation.call("memory", "RebuildGraph", undo)
    assert (await installation.end_of(undone.job.job_id)).state == job_pb2.JOB_STATE_SUCCEEDED
    memory = await installation.memory()
    assert {fact[2] for fact in await memory.facts()} == {"Fool0", "Fool1"}
    return await installation.left([added.job.job_id, anew.job.job_id, undone.job.job_id])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with an_installation(tmp_path_factory.mktemp("undisturbed"), nursery) as installation:
            return await story(installation)

    return asyncio.run(run())


@pytest.mark.parametrize("fate", FATES)
async def test_a_death_while_texts_are_read_anew_changes_nothing_in_the_end(
    fate: tuple[Milestone, int], tmp_path: Any, nursery: Nursery, undisturbed: dict[str, Any]
) -> None:
    async with an_installation(tmp_path, nursery) as installation:
        left = await story(installation, fate)
        assert installation.deaths == 1
        rows, without = left.pop("rows"), dict(undisturbed["rows"])
        assert {name: (rows[name], without[name]) for name in rows if rows[name] != without[name]} == {}
        assert {name: left[name] for name in left if left[name] != undisturbed[name]} == {}
        assert await installation.findings() == []
