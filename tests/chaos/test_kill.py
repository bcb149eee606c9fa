"""kill -9 in the middle of a job: after a restart on the same data the job ends, with nothing twice."""

import asyncio
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.credits.money import DEFAULT_PRICES
from palimpsest.v1 import (
    credits_pb2,
    entity_pb2,
    episode_pb2,
    graph_pb2,
    job_pb2,
    jobs_pb2,
    memory_episodes_pb2,
    memory_ingest_pb2,
)
from tests.doubles.model_replies import Asked, Reply, Rule, late
from tests.doubles.model_server import MODELS, ModelServer
from tests.doubles.product import Tenant
from tests.doubles.understanding import understand
from tests.e2e import up_process
from tests.e2e.talking import Memory, balance, day
from tests.e2e.up_process import UpProcess, clean_environment, program

pytestmark = [pytest.mark.milvus, pytest.mark.timeout(240)]

GRAPH, REQUEST = "notes", "the only request"
CHUNKS = 3
ANSWER_MILLISECONDS = 300
CREDITS = 1_000_000
ENDS_WITHIN_SECONDS = 90

Moment = Callable[["Scene"], Awaitable[None]]


class Scene:
    """A product in a child process, a slow model behind it, and one tenant with one document to remember."""

    def __init__(self, data_dir: Path, server: ModelServer, ear: "Ear") -> None:
        settings = {
            "PALIMPSEST_ENGINE": "openai",
            "PALIMPSEST_MODEL__BASE_URL": server.base_url,
            "PALIMPSEST_MODEL__MEDIUM_MODEL": MODELS[0],
            "PALIMPSEST_MODEL__LOW_MODEL": MODELS[1],
            "PALIMPSEST_EMBEDDER": "openai",
            "PALIMPSEST_EMBEDDING__BASE_URL": server.base_url,
            "PALIMPSEST_EMBEDDING__MODEL": MODELS[2],
            "PALIMPSEST_EMBEDDING__DIMENSION": "64",
        }
        self.settings = settings
        self.server = server
        self.ear = ear
        self.up = UpProcess(data_dir, settings)
        self.tenant: up_process.Tenant | None = None
        self.job_id = ""

    @asynccontextmanager
    async def memory(self) -> AsyncIterator[Memory]:
        """The tenant's graph, by a channel to where the product listens now."""
        assert self.tenant is not None
        async with grpc.aio.insecure_channel(self.up.target) as channel:
            yield Memory(Tenant(self.tenant.id, self.tenant.key, channel), GRAPH)

    def document(self) -> memory_ingest_pb2.AddEpisodeRequest:
        """Three chunks, each with one fact of the same slot."""
        parts = [f"Atlas uses Tool{number}.\n{' 7' * 620}\n\n" for number in range(CHUNKS)]
        return memory_ingest_pb2.AddEpisodeRequest(
            graph_id=GRAPH,
            request_id=REQUEST,
            kind=episode_pb2.EPISODE_KIND_DOCUMENT,
            document_id="services",
            text="".join(parts),
            reference_time=day("2026-01-01"),
        )

    async def begin(self) -> None:
        """Starts, makes the tenant, hands in the document."""
        await asyncio.to_thread(self.up.start)
        self.tenant = await asyncio.to_thread(self.up.tenant, CREDITS)
        async with self.memory() as memory:
            accepted = await memory.tenant.call(memory.tenant.memory.AddEpisode, self.document())
        self.job_id = accepted.job.job_id

    async def kill(self) -> None:
        """kill -9 of the product's process alone; its children must go by themselves."""
        await asyncio.to_thread(self.up.kill)

    async def again(self) -> None:
        await asyncio.to_thread(self.up.start)

    async def until(self, seen: Callable[[job_pb2.Job], bool]) -> job_pb2.Job:
        """The job's first change that is as wanted, told by its watcher."""
        asked = jobs_pb2.WatchJobRequest(job_id=self.job_id)
        async with self.memory() as memory:
            watching = memory.tenant.jobs.WatchJob(
                asked, metadata=memory.tenant.metadata, timeout=ENDS_WITHIN_SECONDS
            )
            async for change in watching:
                if seen(change.job):
                    return change.job
        raise AssertionError("the job ended without it")

    async def asked_for(self, task: str, times: int) -> None:
        """Returns when the model has been asked a task so often; it has not answered the last one then."""
        await asyncio.to_thread(self.ear.wait, task, times)


class Ear:
    """Answers slowly and right, and lets others wait for what the model is asked."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()
        self._changed = threading.Condition()

    def __call__(self, asked: Asked) -> Reply:
        with self._changed:
            self._asked[asked.task] += 1
            self._changed.notify_all()
        return late(ANSWER_MILLISECONDS, understand(asked))

    def wait(self, task: str, times: int) -> None:
        with self._changed:
            heard = self._changed.wait_for(lambda: self._asked[task] >= times, ENDS_WITHIN_SECONDS)
        assert heard, f"{task} was not asked {times} times"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    ear = Ear()
    with ModelServer(Rule("", "", ear)) as server:
        scene = Scene(tmp_path / "data", server, ear)
        yield scene
        if scene.up.process.poll() is None:
            scene.up.stop()


async def accepted(_: Scene) -> None:
    """As soon as the job is durable: AddEpisode has answered."""


async def understanding(scene: Scene) -> None:
    await scene.asked_for("extract_world", 1)


async def between_chunks(scene: Scene) -> None:
    await scene.until(lambda job: resolved(job) >= 1)


async def judging(scene: Scene) -> None:
    """In the middle of resolving: the second chunk's fact is compared with the first's."""
    await scene.asked_for("judge_statements", 1)


async def before_the_end(scene: Scene) -> None:
    await scene.until(lambda job: resolved(job) == CHUNKS)


async def recovering(scene: Scene) -> None:
    """In the middle of what a restart does: the model is asked once more than before."""
    await scene.asked_for("extract_world", len(scene.server.of_task("extract_world")) + 1)


def resolved(job: job_pb2.Job) -> int:
    return sum(chunk.stage == episode_pb2.CHUNK_STAGE_RESOLVED for chunk in job.chunks)


async def check_whole(scene: Scene) -> None:
    """The job has ended well, everything is there once, and it was paid once."""
    job = await scene.until(lambda job: job.HasField("finished_at"))
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    assert [chunk.stage for chunk in job.chunks] == [episode_pb2.CHUNK_STAGE_RESOLVED] * CHUNKS
    async with scene.memory() as memory:
        await check_memory(memory, scene, job)
        await check_ledger(memory, job)
        again = await memory.tenant.call(memory.tenant.memory.AddEpisode, scene.document())
        assert (again.job.job_id, again.replayed) == (job.job_id, True)
    audit = await asyncio.to_thread(
        subprocess.run,
        [program("palimpsest-admin"), "audit", "--data-dir", str(scene.up.data_dir)],
        env=clean_environment(scene.settings),
        capture_output=True,
        text=True,
        check=False,
    )
    assert audit.returncode == 0, audit.stdout + audit.stderr


async def check_memory(memory: Memory, scene: Scene, job: job_pb2.Job) -> None:
    expected = {("Atlas", "uses", f"Tool{number}", "2026-01-01", "") for number in range(CHUNKS)}
    assert await memory.facts() == expected
    assert set((await memory.claims()).values()) == {1}
    counts = job.result.counts
    assert (counts.statements_added, counts.claims_added) == (CHUNKS, CHUNKS)
    assert len(set(job.result.added_statement_ids)) == CHUNKS
    graph = (
        await memory.tenant.call(memory.tenant.graphs.GetGraph, graph_pb2.GetGraphRequest(graph_id=GRAPH))
    ).graph
    assert (graph.counts.episodes, graph.counts.statements, graph.counts.claims) == (CHUNKS,) * 3
    assert graph.revision.revision == job.revision == CHUNKS, "one revision a chunk, none twice"
    episodes = [await memory.read_episode(chunk.episode_id) for chunk in job.chunks]
    assert "".join(episode.text for episode in episodes) == scene.document().text
    passages = [passage.passage_id for episode in episodes for passage in episode.passages]
    assert len(passages) == len(set(passages))
    recalled = await memory.recall("Which tools does Atlas use?", max_passages=50)
    assert len({one.passage.text for one in recalled.passages}) == len(recalled.passages)
    assert {one.passage.passage_id for one in recalled.passages} <= set(passages)
    assert all(f"(Atlas) --[uses]--> (Tool{number})" in recalled.context for number in range(CHUNKS))


async def check_ledger(memory: Memory, job: job_pb2.Job) -> None:
    price = sum(DEFAULT_PRICES.ingest(chunk.token_count) for chunk in job.chunks)
    assert (job.credits.spent_micros, job.credits.held_micros) == (price, 0)
    assert await balance(memory.tenant) == (CREDITS - price, 0)
    groups: dict[int, set[str]] = {}
    for entry in await memory.ledger(job.job_id):
        groups.setdefault(entry.kind, set()).add(entry.group_id)
    assert len(groups[credits_pb2.LEDGER_ENTRY_KIND_HOLD]) == 1
    assert len(groups[credits_pb2.LEDGER_ENTRY_KIND_SETTLE]) == 1
    assert credits_pb2.LEDGER_ENTRY_KIND_VOID not in groups


@pytest.mark.case("same request_id ten times")
@pytest.mark.slow
async def test_an_ingest_survives_a_kill_and_another_in_its_recovery(scene: Scene) -> None:
    await scene.begin()
    await understanding(scene)
    await scene.kill()
    await scene.again()
    await between_chunks(scene)
    asked = [one.user for one in scene.server.of_task("extract_world")]
    await scene.kill()
    await scene.again()
    await check_whole(scene)
    later = [one.user for one in scene.server.of_task("extract_world")][len(asked) :]
    assert later == [], "what was understood is not asked again"


RETRACTED = 450
"""Episodes of one source: three parts of the job that retracts it."""


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_retraction_survives_a_kill_between_its_parts(scene: Scene, part: int) -> None:
    await asyncio.to_thread(scene.up.start)
    scene.tenant = await asyncio.to_thread(scene.up.tenant, CREDITS)
    asked = memory_episodes_pb2.RetractSourceRequest(graph_id=GRAPH, source="gossip", request_id=REQUEST)
    async with scene.memory() as memory:
        await memory.assert_triples(("Fay", "likes", "tea"), at="2019-01-01", source="diary")
        await memory.tenant.call(memory.tenant.memory.AssertTriples, gossip())
        before = len(await memory.facts())
        scene.job_id = (await memory.tenant.call(memory.tenant.memory.RetractSource, asked)).job.job_id
    published = (await scene.until(lambda job: bool(job.revision))).revision if part else 0
    if part > 1:
        await scene.until(lambda job: job.revision > published)
    await scene.kill()
    await scene.again()
    job = await scene.until(lambda job: job.HasField("finished_at"))
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    counts = job.result.counts
    assert (counts.episodes_deleted, counts.claims_revoked) == (RETRACTED, RETRACTED)
    assert before == RETRACTED + 1
    async with scene.memory() as memory:
        assert await memory.facts() == {("Fay", "likes", "tea", "2019-01-01", "")}
        again = await memory.tenant.call(memory.tenant.memory.RetractSource, asked)
        assert again.job.job_id == job.job_id


def gossip() -> memory_ingest_pb2.AssertTriplesRequest:
    """As many claims as episodes, each of its own day and thing."""
    first = day("2020-01-01").ToSeconds()
    claims = [
        memory_ingest_pb2.ClaimInput(
            subject=entity_pb2.EntityRef(name="Fay"),
            predicate="likes",
            object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name=f"thing {number}")),
            reference_time=Timestamp(seconds=first + number * 86_400),
        )
        for number in range(RETRACTED)
    ]
    return memory_ingest_pb2.AssertTriplesRequest(
        graph_id=GRAPH, request_id="gossip", source="gossip", claims=claims
    )


MOMENTS: Sequence[Sequence[Moment]] = [
    [accepted],
    [accepted, recovering],
    [understanding, recovering, recovering],
    [between_chunks],
    [judging],
    [before_the_end],
    [before_the_end, accepted],
]


@pytest.mark.slow
@pytest.mark.parametrize("moments", MOMENTS, ids=lambda given: " then ".join(one.__name__ for one in given))
async def test_an_ingest_survives_kills_at_any_moment(scene: Scene, moments: Sequence[Moment]) -> None:
    await scene.begin()
    for moment in moments:
        await moment(scene)
        await scene.kill()
        await scene.again()
    await check_whole(scene)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [understanding, between_chunks], ids=lambda given: given.__name__)
async def test_a_stop_in_the_middle_is_clean_and_the_next_start_ends_the_job(
    scene: Scene, moment: Moment
) -> None:
    await scene.begin()
    await moment(scene)
    assert await asyncio.to_thread(scene.up.stop, signal.SIGTERM) == 0  # fails itself when a child is left
    await scene.again()
    await check_whole(scene)
