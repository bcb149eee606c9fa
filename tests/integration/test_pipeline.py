"""The pipeline when its own stores fall, when a step has a bug, and when it is stopped in the middle."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.credits.audit import audit
from gateway.credits.money import DEFAULT_PRICES, MicroCredits
from gateway.ingest.archiving import Archiving
from gateway.ingest.documents import Documents
from gateway.ingest.durable import DurableEngine, DurableSettings
from gateway.ingest.endings import Endings
from gateway.ingest.erasing import Erasing
from gateway.ingest.pipeline import Pipeline
from gateway.ingest.rebuilding import Rebuilding
from gateway.ingest.rereading import Rereading
from gateway.ingest.retracting import Retracting
from gateway.ingest.retrying import Retrying
from gateway.ingest.steps import Steps
from gateway.ingest.undoing import Undoing
from gateway.services import ServiceName, Services
from gateway.store.bell import Bell
from gateway.store.job_values import Job, JobKind, JobState, Order, Outcome
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from gateway.store.quotas import Quotas
from gateway.store.tenants import Limits
from palimpsest.errors import error_of_status
from palimpsest.v1 import episode_pb2, memory_ingest_pb2
from palimpsest.v1.job_pb2 import JobChunk
from services.domain.facts import FactKind, Mention, WorldFact
from services.domain.ids import JobId
from services.domain.scope import Scope
from services.llm import tasks
from services.llm.port import Answer
from services.runtime.assertion import Signer
from services.runtime.inprocess import serve_inprocess
from services.runtime.resources import Resources, clock
from services.stores.errors import StoreUnavailable
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.sql import SqlMemory
from services.stores.sql.engine import engine_for
from services.stores.vectors.port import Collection, VectorRow
from tests.doubles.embedder import HashEmbedder
from tests.doubles.engine import ScriptedEngine
from tests.doubles.gateway import ACME, graph, sqlite_stores
from tests.doubles.product import IMPATIENT
from tests.doubles.sqlite_files import laid_url
from tests.doubles.vectors import ArrayVectorStore

CEILING = MicroCredits(50_000)
TIMES = 4
"""More than IMPATIENT tries a step."""


class FallingJobs(Jobs):
    """Jobs whose database is away for some calls, by the name of the method."""

    falls: dict[str, int]

    def _fall(self, name: str) -> None:
        if self.falls.get(name):
            self.falls[name] -= 1
            raise StoreUnavailable("ledger")

    async def start(self, job: JobId) -> Job:
        self._fall("start")
        return await super().start(job)

    async def finish(self, job: JobId, outcome: Outcome) -> Job:
        self._fall("finish")
        return await super().finish(job, outcome)


class BrokenProgress(Progress):
    """Progress that can't be told of failures."""

    broken = False

    async def record(self, job: JobId, chunks: Any) -> int:
        if self.broken and any(chunk.stage == episode_pb2.CHUNK_STAGE_FAILED for chunk in chunks):
            raise StoreUnavailable("jobs")
        return await super().record(job, chunks)


class FallingVectors(ArrayVectorStore):
    """Vectors that are away for some writes, and write when they may go."""

    falls = 0

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.writing = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()

    async def upsert(self, scope: Scope, collection: Collection, rows: Sequence[VectorRow]) -> None:
        if collection is Collection.STATEMENTS:
            self.writing.set()
            await self.go.wait()
        if self.falls and collection is Collection.STATEMENTS:
            self.falls -= 1
            raise StoreUnavailable("vectors")
        await super().upsert(scope, collection, rows)


class SlowEngine(ScriptedEngine):
    """Answers when it may go, or has a bug."""

    def __init__(self) -> None:
        super().__init__()
        self.asking = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()
        self.bug = False

    async def normalise(self, scope: Any, task: tasks.Normalise) -> Answer[tasks.Normalised]:
        self.asking.set()
        await self.go.wait()
        if self.bug:
            raise LookupError("a bug")
        return await super().normalise(scope, task)


@dataclass
class Works:
    """A pipeline over real services and stores in a folder."""

    pipeline: Pipeline
    jobs: FallingJobs
    progress: BrokenProgress
    llm: SlowEngine
    vectors: FallingVectors
    bell: Bell
    _count: list[int] = field(default_factory=list)

    async def accept(self, text: str = "My sister Ann lives in Graz.") -> Job:
        self._count.append(0)
        request = memory_ingest_pb2.AddEpisodeRequest(
            text=text, kind=episode_pb2.EPISODE_KIND_CONVERSATION, session_id="s"
        )
        key = f"r{len(self._count)}"
        order = Order(
            graph(ACME),
            JobKind.INGEST,
            "AddEpisode",
            key,
            key,
            request.SerializeToString(),
            CEILING,
            "v1",
        )
        return (await self.jobs.accept(order)).job

    async def ended(self, job: Job) -> Job:
        """The job once it has ended."""
        async with asyncio.timeout(30):
            with self.bell.listen(job.id) as listener:
                while not (found := await self.jobs.find(job.id)).finished:
                    await listener.wait(0.5)
        return found

    async def chunk(self, job: Job) -> JobChunk:
        return (await self.progress.snapshot(job.id)).chunks[0]


@asynccontextmanager
async def at_work(folder: Path, drain_seconds: float = 0.05) -> AsyncIterator[Works]:
    """Starts the pipeline, which goes on with what it finds; stops it as a process that is told to stop."""
    async with AsyncExitStack() as stack:
        stores = await sqlite_stores(folder)
        stack.push_async_callback(stores.close)
        await stores.tenants.create(ACME, "")
        async with stores.ledger.books(ACME) as books:
            await books.grant(ACME, "start", MicroCredits(100_000), "")
        embedder, llm = HashEmbedder(), SlowEngine()
        graph_store = await SqlGraphStore.open(engine_for(laid_url(folder / "graph.db")))
        stack.push_async_callback(graph_store.close)
        memory = await SqlMemory.open(engine_for(laid_url(folder / "memory.db")))
        stack.push_async_callback(memory.close)
        vectors = FallingVectors(embedder.dimension)
        resources = Resources(graph_store, memory, vectors, llm, embedder, clock)
        signer = Signer(b"sixteen bytes at least", clock)
        served = await serve_inprocess(resources, signer)
        stack.push_async_callback(served.stop, 0.1)
        services = Services(dict.fromkeys(ServiceName, served.target), signer)
        stack.push_async_callback(services.close)
        bell = Bell()
        quotas = Quotas(stores.clock, Limits())
        jobs = FallingJobs(stores.ledger_database, stores.clock, stores.ledger, stores.graphs, quotas, bell)
        jobs.falls = {}
        progress = BrokenProgress(stores.progress_database, stores.clock, bell)
        engine = DurableEngine(
            DurableSettings(laid_url(folder / "workflows.db"), "test", drain_seconds=drain_seconds)
        )
        steps = Steps(services, jobs, stores.graphs, stores.rules, progress, stores.prices, IMPATIENT)
        endings = Endings(
            jobs, progress, stores.prices, stores.tenants, Limits(goodwill_micros_per_day=1_000_000)
        )
        documents = Documents(services, IMPATIENT.store_seconds, IMPATIENT.model_seconds)
        retracting = Retracting(documents, jobs, progress, IMPATIENT.patience)
        retrying = Retrying(services, jobs, progress, IMPATIENT.patience, IMPATIENT.store_seconds)
        rebuilding = Rebuilding(services, jobs, IMPATIENT.patience, IMPATIENT.model_seconds)
        erasing = Erasing.over(engine, services, stores, IMPATIENT)
        archiving = Archiving(
            services, jobs, stores.graphs, IMPATIENT.patience, clock, IMPATIENT.store_seconds
        )
        pipeline = Pipeline(
            engine,
            jobs,
            steps,
            retracting,
            retrying,
            rebuilding,
            Rereading(services, jobs, stores.graphs, steps),
            Undoing(services, jobs, steps),
            archiving,
            endings,
            erasing,
        )
        stack.push_async_callback(engine.close)
        await engine.launch()
        yield Works(pipeline, jobs, progress, llm, vectors, bell)
        assert await audit(stores.ledger_database, stores.clock) == []


@pytest.fixture
async def works(tmp_path: Path) -> AsyncIterator[Works]:
    async with at_work(tmp_path) as works:
        yield works


async def test_a_job_ends_however_often_its_end_could_not_be_written(works: Works) -> None:
    works.jobs.falls["finish"] = TIMES
    job = await works.accept()
    await works.pipeline.submit(job)
    assert (await works.ended(job)).state is JobState.SUCCEEDED


async def test_a_job_that_can_not_be_started_ends_with_the_reason_and_costs_nothing(works: Works) -> None:
    works.jobs.falls["start"] = TIMES
    job = await works.accept()
    await works.pipeline.submit(job)
    ended = await works.ended(job)
    assert (ended.state, ended.hold.settled) == (JobState.FAILED, 0)
    assert ended.error is not None
    assert ended.error.message == "ledger can't be reached now"


async def test_a_failure_that_can_not_be_shown_still_ends_the_job(works: Works) -> None:
    works.progress.broken = True
    works.llm.bug = True
    job = await works.accept()
    await works.pipeline.submit(job)
    assert (await works.ended(job)).state is JobState.FAILED


async def test_a_job_whose_revision_is_begun_does_not_fail(works: Works) -> None:
    quote = "My sister Ann lives in Graz."
    works.llm.world = tasks.WorldFacts(
        (WorldFact(FactKind.CLAIM, Mention("Ann"), "lives_in", Mention("Graz"), quote, 0, quote),)
    )
    works.vectors.falls = TIMES
    job = await works.accept(quote)
    await works.pipeline.submit(job)
    ended = await works.ended(job)
    assert (ended.state, ended.revision, works.vectors.falls) == (JobState.SUCCEEDED, 1, 0)


async def test_a_job_that_is_cut_by_a_stop_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    async with at_work(tmp_path) as works:
        works.llm.go.clear()
        job = await works.accept()
        await works.pipeline.submit(job)
        async with asyncio.timeout(30):
            await works.llm.asking.wait()
    async with at_work(tmp_path) as works:
        ended = await works.ended(job)
        chunk = await works.chunk(job)
    assert (ended.state, ended.error) == (JobState.SUCCEEDED, None)
    assert chunk.stage in (episode_pb2.CHUNK_STAGE_RESOLVED, episode_pb2.CHUNK_STAGE_NOTHING)


GRAZ = "My sister Ann lives in Graz."
LIVES = WorldFact(FactKind.CLAIM, Mention("Ann"), "lives_in", Mention("Graz"), GRAZ, 0, GRAZ)


def reason_of(job: Job) -> str:
    assert job.error is not None
    return error_of_status(job.error).reason


async def test_a_job_that_is_cancelled_before_it_begins_leaves_nothing(works: Works) -> None:
    job = await works.accept(GRAZ)
    await works.jobs.request_cancel(ACME, job.id)
    await works.pipeline.submit(job)
    ended = await works.ended(job)
    assert (ended.state, reason_of(ended), ended.revision) == (JobState.CANCELLED, "JOB_CANCELLED", 0)
    assert (ended.hold.settled, ended.hold.returned) == (0, CEILING)
    assert (await works.progress.snapshot(job.id)).chunks == {}


async def test_what_a_cancelled_job_has_not_resolved_is_not_paid_for_and_can_be_said_again(
    works: Works,
) -> None:
    works.llm.world = tasks.WorldFacts((LIVES,))
    works.llm.go.clear()
    job = await works.accept(GRAZ)
    await works.pipeline.submit(job)
    await works.llm.asking.wait()
    await works.jobs.request_cancel(ACME, job.id)
    works.llm.go.set()
    ended = await works.ended(job)
    assert (ended.state, reason_of(ended), ended.revision) == (JobState.CANCELLED, "JOB_CANCELLED", 0)
    assert (ended.hold.settled, ended.hold.returned) == (0, CEILING)
    chunk = await works.chunk(job)
    assert chunk.stage == episode_pb2.CHUNK_STAGE_FAILED
    assert error_of_status(chunk.error).reason == "JOB_CANCELLED"
    again = await works.accept(GRAZ)
    await works.pipeline.submit(again)
    assert (await works.ended(again)).revision == 1, "it is not taken for known"


async def test_what_was_resolved_before_a_cancellation_stays_and_is_paid_for(works: Works) -> None:
    works.llm.world = tasks.WorldFacts((LIVES,))
    works.vectors.go.clear()
    job = await works.accept(" ".join([GRAZ] * 600))
    await works.pipeline.submit(job)
    await works.vectors.writing.wait()
    await works.jobs.request_cancel(ACME, job.id)
    works.vectors.go.set()
    ended = await works.ended(job)
    chunks = (await works.progress.snapshot(job.id)).chunks
    resolved = [one for one in chunks.values() if one.stage == episode_pb2.CHUNK_STAGE_RESOLVED]
    assert (len(resolved), len(chunks)) == (1, 3)
    assert (ended.state, reason_of(ended), ended.revision) == (JobState.CANCELLED, "JOB_CANCELLED", 1)
    assert ended.hold.settled == DEFAULT_PRICES.ingest(resolved[0].token_count)
