"""The whole product in this process for tests: real gateway, services and SQL stores; fast vectors.

The clock of the services and the engine are the test's; the gateway's money keeps the database's clock.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import grpc.aio

from gateway.credits.money import MicroCredits
from gateway.ingest.patience import Patience
from gateway.ingest.steps import StepSettings
from gateway.keys import KeyScope
from gateway.settings import GatewaySettings
from gateway.up import Running, bring_up_on
from palimpsest.v1 import (
    admin_pb2_grpc,
    credits_pb2_grpc,
    graph_pb2_grpc,
    jobs_pb2_grpc,
    memory_pb2_grpc,
    privacy_pb2_grpc,
    recall_pb2_grpc,
)
from services.domain.errors import Overloaded
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.llm.port import Engine
from services.runtime.resources import Resources, clock
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.sql import SqlMemory
from services.stores.sql.engine import engine_for
from tests.doubles.embedder import HashEmbedder
from tests.doubles.engine import ScriptedEngine
from tests.doubles.gateway import Refusal
from tests.doubles.sqlite_files import lay
from tests.doubles.vectors import ArrayVectorStore

IMPATIENT = StepSettings(
    patience=Patience(attempts=2, first_wait_seconds=0.01, longest_wait_seconds=0.05, total_seconds=30)
)


MOST_REPEATS = 20


@dataclass
class Tenant:
    """A tenant with credits and a key that may do everything but operate."""

    name: str
    key: str
    channel: grpc.aio.Channel
    _requests: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.graphs = graph_pb2_grpc.GraphServiceStub(self.channel)
        self.memory = memory_pb2_grpc.MemoryServiceStub(self.channel)
        self.recall = recall_pb2_grpc.RecallServiceStub(self.channel)
        self.jobs = jobs_pb2_grpc.JobServiceStub(self.channel)
        self.credits = credits_pb2_grpc.CreditServiceStub(self.channel)
        self.privacy = privacy_pb2_grpc.PrivacyServiceStub(self.channel)
        self.admin = admin_pb2_grpc.AdminServiceStub(self.channel)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.key}"),)

    def request_id(self) -> str:
        """A fresh one."""
        return f"request-{next(self._requests)}"

    async def call(self, method: Any, request: Any, seconds: float = 60) -> Any:
        """As clients do: where the gateway is too busy, which a slow machine makes it, they come again."""
        for _ in range(MOST_REPEATS):
            try:
                return await method(request, metadata=self.metadata, timeout=seconds)
            except grpc.aio.AioRpcError as error:
                if error.details() != Overloaded("the gateway").message:
                    raise
            await asyncio.sleep(0.2)
        return await method(request, metadata=self.metadata, timeout=seconds)

    async def refused(self, method: Any, request: Any, seconds: float = 60) -> Refusal:
        """The refusal of a call that must be refused."""
        try:
            await self.call(method, request, seconds)
        except grpc.aio.AioRpcError as error:
            return Refusal.of(error)
        raise AssertionError("the call was not refused")


@dataclass
class Product:
    """A running product and the stores below it."""

    running: Running
    resources: Resources
    channel: grpc.aio.Channel
    operator: Tenant

    async def tenant(self, name: str, micros: int = 1_000_000_000) -> Tenant:
        """A new tenant with credits."""
        stores = self.running.gateway.stores
        await stores.tenants.create(TenantId(name), name)
        async with stores.ledger.books(TenantId(name)) as books:
            await books.grant(TenantId(name), f"start-{name}", MicroCredits(micros), "")
        _, key = await stores.keys.create(TenantId(name), "all", [KeyScope.ERASE])
        return Tenant(name, key, self.channel)


@asynccontextmanager
async def a_product(
    folder: Path,
    engine: Engine | None = None,
    url: str = "",
    now: Callable[[], Instant] = clock,
    settings: Mapping[str, Any] | None = None,
    steps: StepSettings = IMPATIENT,
    behind: Callable[[Resources], Resources] = lambda resources: resources,
    providers: frozenset[str] = frozenset(),
) -> AsyncIterator[Product]:
    """Runs the product on SQLite files in `folder`, or all of it on the PostgreSQL database at `url`.

    `behind` puts something between the services and their stores.
    """
    urls: dict[str, Any] = {"ledger_url": url, "jobs_url": url, "workflows_url": url} if url else {}
    common: dict[str, Any] = {
        "data_dir": folder,
        "gateway_port": 0,
        "drain_seconds": 0.5,
        "tenant_requests_per_second": 10_000,
        "admission_wait_seconds": 300,
        # What follows ingests is made when a test asks for it.
        "follow_quiet_seconds": 3600,
        "follow_longest_seconds": 3600,
    }
    gateway = GatewaySettings(**(common | urls | dict(settings or {})))
    embedder = HashEmbedder()
    if not url:
        lay(folder)
    async with AsyncExitStack() as stack:
        graph = await SqlGraphStore.open(engine_for(url or f"sqlite:///{folder / 'graph.db'}"))
        stack.push_async_callback(graph.close)
        memory = await SqlMemory.open(engine_for(url or f"sqlite:///{folder / 'memory.db'}"))
        stack.push_async_callback(memory.close)
        vectors = ArrayVectorStore(embedder.dimension)
        resources = Resources(graph, memory, vectors, engine or ScriptedEngine(), embedder, now)
        running = await bring_up_on(behind(resources), gateway, stack, steps, providers=providers)
        operator_key = await running.gateway.stores.keys.init_operator()
        channel = grpc.aio.insecure_channel(running.gateway.target)
        stack.push_async_callback(channel.close)
        yield Product(running, resources, channel, Tenant("", operator_key or "", channel))
