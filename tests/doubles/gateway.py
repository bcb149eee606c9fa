"""A gateway on loopback for tests: real server, real stores, a scripted stand-in for the services."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.rpc import error_details_pb2, status_pb2

from gateway.api.admin import AdminServicer
from gateway.api.credits import CreditServicer
from gateway.api.graphs import GraphServicer, HeldFacts
from gateway.api.jobs import JobServicer
from gateway.api.mount import Servicers
from gateway.commands.rules import Rules
from gateway.credits.money import MicroCredits
from gateway.health import Probe
from gateway.keys import KeyScope
from gateway.server import Gateway, serve
from gateway.settings import GatewaySettings
from gateway.store.clock import SkewedClock
from gateway.store.job_values import JobKind, Order
from gateway.store.stores import Stores, open_stores
from palimpsest.v1.common_pb2 import RevisionStamp
from palimpsest.v1.graph_pb2 import GraphCounts
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.sql.engine import Synchronous, sqlite_engine
from tests.doubles.sqlite_files import laid

ACME = TenantId("acme")
GLOBEX = TenantId("globex")


def order(
    scope: Scope,
    request_key: str,
    *,
    ceiling: int = 100,
    payload: bytes = b"text",
    payload_hash: str = "",
    method: str = "AddEpisode",
) -> Order:
    return Order(
        scope=scope,
        kind=JobKind.INGEST,
        method=method,
        request_key=request_key,
        payload_hash=payload_hash or payload.hex(),
        payload=payload,
        ceiling=MicroCredits(ceiling),
        price_version="v1",
    )


async def sqlite_stores(folder: Path, clock: SkewedClock | None = None) -> Stores:
    return await open_stores(
        sqlite_engine(laid(folder / "ledger.db"), synchronous=Synchronous.FULL),
        sqlite_engine(laid(folder / "jobs.db")),
        key_environment="test",
        clock=clock,
    )


@dataclass
class ScriptedFacts:
    """What the services would tell of graphs; raises `error` instead if it is set."""

    error: Exception | None = None
    asked: list[Scope] = field(default_factory=list)

    async def facts(self, scope: Scope) -> HeldFacts:
        self.asked.append(scope)
        if self.error is not None:
            raise self.error
        return HeldFacts(GraphCounts(statements=3), RevisionStamp(revision=7))


@dataclass
class CountingMeter:
    """Keeps what was recorded."""

    calls: list[tuple[str, str]] = field(default_factory=list)

    def record(self, method: str, code: str, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append((method, code))


@dataclass
class RunningGateway:
    """A gateway with an open channel, two tenants with keys and credits, and an operator."""

    gateway: Gateway
    stores: Stores
    channel: grpc.aio.Channel
    facts: ScriptedFacts
    meter: CountingMeter
    keys: Mapping[str, str]
    """By name: `acme`, `globex` (READ, WRITE, ERASE), `reader` (acme, READ), `operator`."""

    async def call(
        self,
        method: Any,
        request: Any,
        key: str = "acme",
        *,
        seconds: float | None = 10,
        metadata: tuple[tuple[str, str], ...] = (),
    ) -> Any:
        """Calls a method of a stub with a named key ("" for none)."""
        shown = ((("authorization", f"Bearer {self.keys.get(key, key)}"),) if key else ()) + metadata
        return await method(request, timeout=seconds, metadata=shown)

    async def refused(self, method: Any, request: Any, key: str = "acme", **options: Any) -> "Refusal":
        """The refusal of a call that must be refused."""
        try:
            await self.call(method, request, key, **options)
        except grpc.aio.AioRpcError as error:
            return Refusal.of(error)
        raise AssertionError("the call was not refused")


def gateway_servicers(stores: Stores, facts: ScriptedFacts) -> Servicers:
    """What the gateway serves by itself."""
    return {
        "GraphService": GraphServicer(stores.graphs, Rules(stores.rules), facts),
        "JobService": JobServicer(stores.job_view),
        "CreditService": CreditServicer(stores.ledger, stores.balance_watch),
        "AdminService": AdminServicer.over(stores),
    }


@asynccontextmanager
async def running_gateway(
    folder: Path,
    settings: GatewaySettings | None = None,
    more: Servicers | None = None,
    probes: Mapping[str, Probe] | None = None,
) -> AsyncIterator[RunningGateway]:
    stores = await sqlite_stores(folder)
    keys = {}
    operator = await stores.keys.init_operator()
    assert operator is not None
    keys["operator"] = operator
    for tenant in (ACME, GLOBEX):
        await stores.tenants.create(tenant, "")
        async with stores.ledger.books(tenant) as books:
            await books.grant(tenant, "start", MicroCredits(1000), "")
        _, keys[tenant] = await stores.keys.create(tenant, "all", [KeyScope.ERASE])
    _, keys["reader"] = await stores.keys.create(ACME, "reader", [KeyScope.READ])
    facts, meter = ScriptedFacts(), CountingMeter()
    settings = settings or GatewaySettings(gateway_port=0, drain_seconds=0.2)
    servicers = {**gateway_servicers(stores, facts), **(more or {})}
    gateway = await serve(servicers, stores.keys, stores.calls, settings, meter, probes)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{gateway.port}") as channel:
            yield RunningGateway(gateway, stores, channel, facts, meter, keys)
    finally:
        await gateway.stop()
        await stores.close()


@dataclass(frozen=True)
class Refusal:
    """A failed call as a client sees it."""

    code: grpc.StatusCode
    text: str
    request_id: str
    info: error_details_pb2.ErrorInfo
    details: Mapping[str, Any]
    """Details by the name of their message."""

    @property
    def reason(self) -> str:
        assert self.info.domain == "palimpsest"
        return str(self.info.reason)

    @property
    def retryable(self) -> bool:
        return "RetryInfo" in self.details

    @classmethod
    def of(cls, error: grpc.aio.AioRpcError) -> "Refusal":
        trailers: dict[str, Any] = dict(error.trailing_metadata() or ())
        status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
        assert status.code == error.code().value[0]
        assert status.message == error.details()
        details = {}
        for packed in status.details:
            name = packed.type_url.rpartition(".")[2]
            details[name] = getattr(error_details_pb2, name).FromString(packed.value)
        assert details["RequestInfo"].request_id == trailers["x-request-id"]
        return cls(
            error.code(), error.details() or "", trailers["x-request-id"], details["ErrorInfo"], details
        )


def graph(tenant: TenantId, name: str = "g") -> Scope:
    return Scope(tenant, GraphId(name))
