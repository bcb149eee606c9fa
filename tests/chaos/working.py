"""Workers over one installation: processes that die or sleep at milestones, and what they leave when done."""

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import psutil
import psycopg

from gateway.credits.audit import audit
from gateway.credits.money import MicroCredits
from gateway.keys import KeyScope
from gateway.main import gateway_databases
from gateway.settings import GatewaySettings
from gateway.store.clock import DatabaseClock
from gateway.store.stores import open_stores
from palimpsest.v1 import job_pb2, jobs_pb2
from services.domain.facts import FactKind, Mention, WorldFact
from services.domain.scope import TenantId
from services.llm import tasks
from services.llm.port import Answer, ModelRefused
from services.runtime.assertion import Signer
from services.runtime.inprocess import serve_inprocess
from services.runtime.names import ServiceName
from services.runtime.resources import Resources, clock
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.sql import SqlMemory
from services.stores.sql.database import Database
from services.stores.sql.engine import engine_for
from tests.doubles.embedder import HashEmbedder
from tests.doubles.engine import ScriptedEngine
from tests.doubles.product import Tenant
from tests.doubles.schemas import SCHEMAS
from tests.doubles.vectors import ArrayVectorStore
from tests.e2e.talking import Memory, balance
from tests.machine import ROOT

TENANT, GRAPH = "acme", "notes"
SECRET = "sixteen bytes at least"  # guards nothing
CREDITS = 1_000_000
WAIT_SECONDS = 90
_LOOK_SECONDS = 0.05

NOT_COMPARED = {"executors", "artifacts", "memory_fences"}
"""Processes; what a worker that starts sweeps away; rows that PostgreSQL's writers lock."""

Fate = tuple[str, int, int]
"""A milestone, how often it is reached before, and the signal that the process then gives itself."""


class Reader(ScriptedEngine):
    """Reads "X uses Y." in what is said, and declines texts that hold one of the words `declined`.

    `misread`: what it takes an object for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.declined: Sequence[str] = ()
        self.misread: Mapping[str, str] = {}

    async def extract_world(self, _scope: Any, task: tasks.Extract) -> Answer[tasks.WorldFacts]:
        facts = []
        for turn in task.turns:
            if any(word in turn.text for word in self.declined):
                raise ModelRefused("declined")
            for found in re.finditer(r"(\w+) uses (\w+)\.", turn.text):
                names = Mention(found[1]), Mention(self.misread.get(found[2], found[2]))
                facts.append(
                    WorldFact(FactKind.CLAIM, names[0], "uses", names[1], found[0], turn.position, found[0])
                )
        return self._answer("extract_world", task, tasks.WorldFacts(facts))


class Nursery:
    """Forks workers. `fork` answers the process, which tells its address in a file when it serves."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.doubles.worker"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fork(self, asked: Mapping[str, Any]) -> psutil.Process:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return psutil.Process(int(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Worker:
    """A gateway in a process of its own."""

    def __init__(self, process: psutil.Process, told: Path) -> None:
        self.process = process
        self._told = told
        self._stack = AsyncExitStack()
        self._channel: grpc.aio.Channel | None = None

    @property
    def lives(self) -> bool:
        return self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE

    @property
    def sleeps(self) -> bool:
        return bool(self.process.status() == psutil.STATUS_STOPPED)

    async def asleep(self) -> None:
        """Returns once it sleeps."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not self.sleeps:  # noqa: ASYNC110  # nobody tells of another process's sleep
                await asyncio.sleep(_LOOK_SECONDS)

    async def channel(self) -> grpc.aio.Channel | None:
        """To it, once it serves; None when it has died, or fallen asleep, before."""
        if self._channel is None:
            while not self._told.exists():
                if not self.lives or self.sleeps:
                    return None
                await asyncio.sleep(_LOOK_SECONDS)
            self._channel = grpc.aio.insecure_channel(self._told.read_text())
            self._stack.push_async_callback(self._channel.close)
        return self._channel

    async def close(self) -> None:
        """Stops it as an operator does; what sleeps is woken."""
        await self._stack.aclose()
        if self.lives:
            self.process.resume()
            self.process.terminate()
            await asyncio.to_thread(self.process.wait, WAIT_SECONDS)


class Installation:
    """Services and stores that live on, and workers that don't."""

    def __init__(
        self, folder: Path, url: str, owner_url: str, nursery: Nursery, target: str, resources: Resources
    ) -> None:
        self.folder = folder
        self.url = url
        self.resources = resources
        self._owner_url = owner_url
        self._nursery = nursery
        self._target = target
        self._key = ""
        self._started = 0
        self.fates: list[Fate] = []
        self.worker: Worker | None = None
        self.deaths = 0
        self.most_workers = 8

    @property
    def engine(self) -> Reader:
        assert isinstance(self.resources.engine, Reader)
        return self.resources.engine

    def settings(self, executor: str = "worker-0") -> dict[str, Any]:
        urls = {"ledger_url": self.url, "jobs_url": self.url, "workflows_url": self.url} if self.url else {}
        return {
            "data_dir": str(self.folder),
            "gateway_port": 0,
            "drain_seconds": 0.2,
            "sweep_seconds": 3600,
            # What follows ingests is made when the graph is quiet: how long a story takes decides nothing.
            "follow_quiet_seconds": 3600,
            "follow_longest_seconds": 3600,
            "executor_id": executor,
            **urls,
        }

    async def prepare(self) -> None:
        """A tenant with credits and a key."""
        async with self._gateway_stores() as stores:
            await stores.tenants.create(TenantId(TENANT), "")
            async with stores.ledger.books(TenantId(TENANT)) as books:
                await books.grant(TenantId(TENANT), "start", MicroCredits(CREDITS), "")
            _, self._key = await stores.keys.create(TenantId(TENANT), "all", [KeyScope.ERASE])

    def start(self, executor: str = "worker-0", fates: Sequence[Fate] = ()) -> Worker:
        """Another worker."""
        self._started += 1
        told = self.folder / f"worker-{self._started}.target"
        asked = {
            "settings": self.settings(executor),
            "targets": dict.fromkeys([name.value for name in ServiceName], self._target),
            "secret": SECRET,
            "fates": fates,
            "told": str(told),
            "log": str(self.folder / "workers.log"),
        }
        self.worker = Worker(self._nursery.fork(asked), told)
        return self.worker

    async def memory(self) -> Memory:
        """The tenant's graph, by a worker that lives: the last one, or the next with the next fate."""
        while True:
            if self.worker is None or not self.worker.lives:
                self.deaths += self.worker is not None
                assert self._started <= self.most_workers, (self.folder / "workers.log").read_text()
                self.start(fates=[self.fates.pop(0)] if self.fates else [])
            assert self.worker is not None
            channel = await self.worker.channel()
            if channel is not None:
                return Memory(Tenant(TENANT, self._key, channel), GRAPH)

    async def call(self, service: str, method: str, request: Any) -> Any:
        """A call that is repeated, by another worker, when the one that had it died."""
        while True:
            tenant = (await self.memory()).tenant
            try:
                return await tenant.call(getattr(getattr(tenant, service), method), request)
            except grpc.aio.AioRpcError:
                assert self.worker is not None
                try:
                    await asyncio.to_thread(self.worker.process.wait, 5)
                except psutil.TimeoutExpired:
                    raise AssertionError(f"{method} failed, and its worker lives") from None

    async def end_of(self, job_id: str) -> job_pb2.Job:
        """The job in its final state."""
        while True:
            job = (await self.call("jobs", "GetJob", jobs_pb2.GetJobRequest(job_id=job_id))).job
            if job.HasField("finished_at"):
                assert isinstance(job, job_pb2.Job)
                return job
            await asyncio.sleep(_LOOK_SECONDS)

    async def left(self, jobs: Sequence[str]) -> dict[str, Any]:
        """All that there is, but for ids and times; and how the jobs ended, as told."""
        memory = await self.memory()
        ended = [await self.end_of(job) for job in jobs]
        return {
            "rows": self.rows(),
            "vectors": {
                str(collection): len(rows)
                for (_, collection), rows in self.vectors._rows.items()
                if rows  # a collection that was emptied is like one that never was
            },
            "facts": await memory.facts(),
            "claims": await memory.claims(),
            "balance": await balance(memory.tenant),
            "money": sorted((one.kind, one.amount_micros) for one in await memory.ledger()),
            "jobs": [_told(job) for job in ended],
        }

    @property
    def vectors(self) -> ArrayVectorStore:
        assert isinstance(self.resources.vectors, ArrayVectorStore)
        return self.resources.vectors

    def rows(self) -> dict[str, int]:
        """How many each table of the product's schemas has; processes are told apart elsewhere."""
        found: dict[str, int] = {}
        for component, schema in SCHEMAS.items():
            names = [name for name in schema.metadata.tables if name not in NOT_COMPARED]
            with self._connection(component) as execute:
                for name in names:
                    found[name] = execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
        with self._connection("jobs") as execute:
            kept = "SELECT count(*) FROM artifacts WHERE stage <> 'outcome'"
            found["texts that steps kept"] = execute(kept).fetchone()[0]
        return found

    def lapse(self) -> None:
        """As if imports had been silent for longer than their places are kept."""
        with self._connection("ledger") as execute:
            execute("UPDATE graphs SET import_leased_until = 0 WHERE import_owner IS NOT NULL")
            execute("COMMIT")

    async def findings(self) -> Sequence[Any]:
        """What the audit of the ledger finds."""
        (engine, schema), (other, _) = gateway_databases(GatewaySettings(**self.settings()))
        await other.dispose()
        database = Database(engine, schema.component)
        try:
            return await audit(database, DatabaseClock())
        finally:
            await database.close()

    @asynccontextmanager
    async def _gateway_stores(self) -> AsyncIterator[Any]:
        (ledger, _), (progress, _) = gateway_databases(GatewaySettings(**self.settings()))
        stores = await open_stores(ledger, progress, key_environment="live")
        try:
            yield stores
        finally:
            await stores.close()

    def _connection(self, component: str) -> Any:
        return _on_postgres(self._owner_url) if self.url else _on_sqlite(self.folder / f"{component}.db")


@asynccontextmanager
async def an_installation(
    folder: Path, nursery: Nursery, url: str = "", owner_url: str = ""
) -> AsyncIterator[Installation]:
    """On SQLite files in `folder`, or on the PostgreSQL database at `url`."""
    async with AsyncExitStack() as stack:
        graph = await SqlGraphStore.open(engine_for(url or f"sqlite:///{folder / 'graph.db'}"))
        stack.push_async_callback(graph.close)
        memory = await SqlMemory.open(engine_for(url or f"sqlite:///{folder / 'memory.db'}"))
        stack.push_async_callback(memory.close)
        embedder = HashEmbedder()
        vectors = ArrayVectorStore(embedder.dimension)
        resources = Resources(graph, memory, vectors, Reader(), embedder, clock)
        served = await serve_inprocess(resources, Signer(SECRET.encode(), clock))
        stack.push_async_callback(served.stop, 0.1)
        installation = Installation(folder, url, owner_url, nursery, served.target, resources)
        await installation.prepare()
        try:
            yield installation
        finally:
            if installation.worker is not None:
                await installation.worker.close()


def _told(job: job_pb2.Job) -> Any:
    """How a job ended, without ids and times; models may be asked twice, what is told of it is one time."""
    counts = {field.name: value for field, value in job.result.counts.ListFields()}
    chunks = [(chunk.index, chunk.stage, chunk.token_count) for chunk in job.chunks]
    credits_ = job.credits
    paid = (credits_.held_micros, credits_.spent_micros, credits_.refunded_micros)
    receipts = [(one.stage, one.calls, one.tokens_in) for one in job.receipt.stages]
    return (job.state, counts, chunks, paid, receipts, len(job.result.episode_ids))


class _Executing:
    """A connection's `execute`, as a context."""

    def __init__(self, connection: Any) -> None:
        self._closing = closing(connection)
        self._connection = connection

    def __enter__(self) -> Any:
        return self._connection.execute

    def __exit__(self, *raised: Any) -> None:
        self._closing.__exit__(*raised)


def _on_sqlite(file: Path) -> _Executing:
    return _Executing(sqlite3.connect(file))


def _on_postgres(url: str) -> _Executing:
    return _Executing(psycopg.connect(url.replace("postgresql+psycopg", "postgresql")))


def nursery() -> Iterator[Nursery]:
    """For a fixture: one for all tests of a module."""
    found = Nursery()
    try:
        yield found
    finally:
        found.close()
