"""Health by dependency; the end of a gateway: what is handled ends, the rest is sent elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from gateway.health import LIVE, NEEDS, PREFIX, Probe
from gateway.rpcs import SERVICES
from gateway.services import Services
from gateway.settings import GatewaySettings
from palimpsest.v1 import credits_pb2, credits_pb2_grpc
from services.domain.errors import Overloaded, StoreDown
from services.runtime.assertion import Signer
from services.runtime.inprocess import serve_inprocess
from services.runtime.names import ServiceName
from services.runtime.probing import STORES
from services.runtime.resources import Resources, clock
from services.stores.errors import StoreUnavailable
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.sql import SqlMemory
from services.stores.sql.database import Database
from services.stores.sql.engine import sqlite_engine
from tests.doubles.embedder import HashEmbedder
from tests.doubles.engine import ScriptedEngine
from tests.doubles.failing_store import FailingStore, Faults
from tests.doubles.gateway import Refusal, RunningGateway, running_gateway
from tests.doubles.sqlite_files import laid
from tests.doubles.vectors import ArrayVectorStore

DEPENDENCIES = ("ledger", "jobs", *STORES, *(name.value for name in ServiceName))
NAMES = ["", LIVE, *(f"{PREFIX}{name}" for name in DEPENDENCIES), *(one.full_name for one in SERVICES)]
RARELY = GatewaySettings(gateway_port=0, drain_seconds=30, health_seconds=3600, health_probe_seconds=600)
"""Looks when it is told to."""


async def told(channel: grpc.aio.Channel, name: str) -> str:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=30)
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


async def not_serving(channel: grpc.aio.Channel) -> set[str]:
    found = {name: await told(channel, name) for name in NAMES}
    assert set(found.values()) <= {"SERVING", "NOT_SERVING"}
    return {name for name, status in found.items() if status == "NOT_SERVING"}


class Switch:
    """A dependency that answers unless it is down."""

    def __init__(self) -> None:
        self.down: Exception | None = None

    async def __call__(self) -> None:
        if self.down is not None:
            raise self.down


async def test_each_name_follows_what_it_needs(tmp_path: Path) -> None:
    switches = {name: Switch() for name in DEPENDENCIES}
    probes: dict[str, Probe] = dict(switches)
    failures = [StoreUnavailable("x"), Overloaded("x"), RuntimeError("a bug of a probe"), TimeoutError()]
    async with running_gateway(tmp_path, RARELY, probes=probes) as running:
        assert await not_serving(running.channel) == set()
        for number, name in enumerate(DEPENDENCIES):
            switches[name].down = failures[number % len(failures)]
            await running.gateway.health.look()
            needing = {need for need, needs in NEEDS.items() if name in needs}
            expected = {f"palimpsest.v1.{need}" if need else "" for need in needing} | {f"{PREFIX}{name}"}
            assert await not_serving(running.channel) == expected, name
            switches[name].down = None
            await running.gateway.health.look()
            assert await not_serving(running.channel) == set(), "and back"


@pytest.mark.parametrize("shown", [False, True])
async def test_reflection_is_served_by_its_setting_alone(tmp_path: Path, shown: bool) -> None:
    settings = RARELY.model_copy(update={"reflection": shown})
    async with running_gateway(tmp_path, settings) as running:
        channel: Any = running.channel
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        call = stub.ServerReflectionInfo(asked, timeout=60)
        if not shown:
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await call.read()
            assert failure.value.code() is grpc.StatusCode.UNIMPLEMENTED
            return
        names = {one.name for one in (await call.read()).list_services_response.service}
        assert names >= {service.full_name for service in SERVICES}


def test_every_public_service_says_what_it_needs() -> None:
    assert NEEDS.keys() == {"", *(service.name for service in SERVICES)}
    assert {need for needs in NEEDS.values() for need in needs} <= set(DEPENDENCIES)


async def test_health_needs_no_key_and_knows_no_other_names(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running:
        assert await told(running.channel, "") == "SERVING"
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await told(running.channel, "nothing")
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND


async def test_stores_of_the_services_are_asked_through_them(tmp_path: Path) -> None:
    faults = {component: Faults(component) for component in STORES}
    embedder, signer = HashEmbedder(), Signer(b"a secret of these tests", clock)
    graph = await SqlGraphStore.open(sqlite_engine(laid(tmp_path / "graph.db")))
    memory = await SqlMemory.open(sqlite_engine(laid(tmp_path / "memory.db")))
    behind: Any = {
        "graph": FailingStore(graph, faults["graph"]),
        "memory": FailingStore(memory, faults["memory"], ("revisions",)),
        "vectors": FailingStore(ArrayVectorStore(embedder.dimension), faults["vectors"]),
    }
    resources = Resources(**behind, engine=ScriptedEngine(), embedder=embedder, now=clock)
    served = await serve_inprocess(resources, signer)
    services = Services(dict.fromkeys(ServiceName, served.target), signer)
    for name in ServiceName:
        await services.probe(name)
    for component, fault in faults.items():
        fault.down = True
        with pytest.raises(StoreDown) as down:
            await services.probe(ServiceName.RECALL, component)
        assert down.value.metadata == {"component": component}
        for other in {"", *STORES} - {component}:
            await services.probe(ServiceName.RECALL, other)
        fault.down = False
        await services.probe(ServiceName.RECALL, component)
    await served.stop(0)
    with pytest.raises(Overloaded):
        await services.probe(ServiceName.EXTRACTOR)
    for one in (services, graph, memory):
        await one.close()


async def test_a_database_that_is_gone_does_not_answer(tmp_path: Path) -> None:
    database = Database(sqlite_engine(tmp_path / "ledger.db"), "ledger")
    await database.probe()
    await database.close()
    broken = Database(sqlite_engine(tmp_path / "no folder" / "ledger.db"), "ledger")
    with pytest.raises(StoreUnavailable):
        await broken.probe()


WELL: dict[str, Probe] = {name: Switch() for name in DEPENDENCIES}


class Slow:
    """Handles calls that end when they are let, and streams that don't end."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()

    async def GetBalance(self, request: Any, context: Any) -> credits_pb2.GetBalanceResponse:
        self.entered.set()
        await self.go_on.wait()
        return credits_pb2.GetBalanceResponse()

    async def WatchBalance(
        self, request: Any, context: Any
    ) -> AsyncIterator[credits_pb2.WatchBalanceResponse]:
        yield credits_pb2.WatchBalanceResponse(cursor="1")
        await asyncio.Event().wait()


def watching(running: RunningGateway) -> Any:
    stub: Any = credits_pb2_grpc.CreditServiceStub(running.channel)
    shown = (("authorization", f"Bearer {running.keys['acme']}"),)
    return stub.WatchBalance(credits_pb2.WatchBalanceRequest(), metadata=shown, timeout=60)


async def test_a_stop_lets_a_call_end_and_sends_others_elsewhere(tmp_path: Path) -> None:
    servicer = Slow()
    async with running_gateway(tmp_path, RARELY, {"CreditService": servicer}, WELL) as running:
        get_balance = credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance
        request = credits_pb2.GetBalanceRequest()
        handled = asyncio.ensure_future(running.call(get_balance, request, seconds=60))
        await servicer.entered.wait()
        stream = watching(running)
        assert (await stream.read()).cursor == "1"
        stopping = asyncio.ensure_future(running.gateway.stop())
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await stream.read()
        cut = Refusal.of(ended.value)
        assert (cut.code, cut.reason, cut.retryable) == (grpc.StatusCode.UNAVAILABLE, "OVERLOADED", True)
        new = await running.refused(get_balance, request)
        assert (new.code, new.reason, new.retryable) == (grpc.StatusCode.UNAVAILABLE, "OVERLOADED", True)
        assert await not_serving(running.channel) == set(NAMES)
        assert not handled.done()
        servicer.go_on.set()
        assert await handled == credits_pb2.GetBalanceResponse()
        await stopping
        with pytest.raises(grpc.aio.AioRpcError) as gone:
            await told(running.channel, "")
        assert gone.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_before_it_drains_a_gateway_goes_on_serving_though_it_says_otherwise(tmp_path: Path) -> None:
    settings = RARELY.model_copy(update={"drain_wait_seconds": 3600.0})
    servicer = Slow()
    servicer.go_on.set()
    async with running_gateway(tmp_path, settings, {"CreditService": servicer}) as running:
        stopping = asyncio.ensure_future(running.gateway.stop())
        stub: Any = health_pb2_grpc.HealthStub(running.channel)
        async for answer in stub.Watch(health_pb2.HealthCheckRequest()):
            if answer.status == health_pb2.HealthCheckResponse.NOT_SERVING:
                break
        get_balance = credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance
        await running.call(get_balance, credits_pb2.GetBalanceRequest(), seconds=60)
        stopping.cancel()
        await asyncio.wait({stopping})
        running.gateway.drain_wait_seconds = 0
