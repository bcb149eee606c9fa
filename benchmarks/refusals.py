"""Refusals: what a call costs that an overloaded gateway refuses, in CPU and in questions to its database.

The gateway's chain as it is served, without gRPC below and handlers above. One call has the only place and
keeps it; all others are refused: those whose key is known by heart, those whose key must be looked up while
as many lookups as may be are under way, and those that come with too little time. Logs are written as in
production. Prints microseconds of CPU of a refusal and lookups of all of them; then where the time goes.

Run: python -m benchmarks.refusals [--calls N] [--profile]
"""

import argparse
import asyncio
import cProfile
import pstats
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio

from gateway.interceptors.authenticate import Authenticate
from gateway.interceptors.keep import KeepCalls
from gateway.interceptors.limits import Admission, TenantLimits
from gateway.interceptors.observe import Metrics, OpenTelemetryMeter
from gateway.interceptors.order import Steps, chain
from gateway.keys import WAITING_FOR_LOOKUPS, ApiKey, Authenticator, FailedAttempts, KeyId, KeyScope, mint
from gateway.logs import log_to
from gateway.rpcs import path
from gateway.server import wall_clock
from gateway.store.calls import CallLog
from gateway.store.tenants import Limits, Tenant, TenantState
from palimpsest.v1 import credits_pb2
from services.domain.instants import Instant
from services.domain.scope import TenantId

METHOD = path(credits_pb2.DESCRIPTOR.services_by_name["CreditService"].methods_by_name["GetBalance"])
MANY = 10**9


class Keys:
    """A store of keys that counts who asks, and answers when it may."""

    def __init__(self) -> None:
        self.known: dict[KeyId, ApiKey] = {}
        self.asked = 0
        self.go = asyncio.Event()
        self.go.set()

    async def find(self, key: KeyId) -> ApiKey | None:
        self.asked += 1
        await self.go.wait()
        return self.known.get(key)

    def add(self) -> str:
        """A key of a tenant of its own, as it is shown."""
        minted = mint("live")
        tenant = Tenant(TenantId(minted.id), "", TenantState.ACTIVE, Limits(), Instant(0))
        scopes = frozenset({KeyScope.READ})
        key = ApiKey(minted.id, tenant, "", scopes, minted.secret_sha256, Instant(0), None, None)
        self.known[minted.id] = key
        return minted.text


class Refused(Exception):
    """How a call ended."""


class Context:
    """What gRPC tells of a call, and is told."""

    def __init__(self, key: str, seconds: float) -> None:
        self._metadata = (("authorization", f"Bearer {key}"),)
        self._seconds = seconds
        self._trailers: Any = ()

    def invocation_metadata(self) -> Any:
        return self._metadata

    def time_remaining(self) -> float:
        return self._seconds

    def peer(self) -> str:
        return "ipv4:10.0.0.1:1234"

    def set_trailing_metadata(self, trailers: Any) -> None:
        self._trailers = trailers

    def trailing_metadata(self) -> Any:
        return self._trailers

    async def abort(self, code: grpc.StatusCode, details: str, trailers: Any) -> None:
        raise Refused(code.name)


class Door:
    """The chain, with one place and nobody who may wait for it."""

    def __init__(self) -> None:
        self.keys = Keys()
        self.go = asyncio.Event()
        attempts = FailedAttempts(MANY, time.monotonic)
        self._chain = chain(
            Steps(
                metrics=Metrics(OpenTelemetryMeter()),
                authenticate=Authenticate(Authenticator(self.keys, attempts, wall_clock, time.monotonic)),
                tenant_limits=TenantLimits(Limits(MANY, MANY, MANY, 1, 1, 1), 1, time.monotonic),
                admission=Admission(1, 0, 1, 1.0),
                keep=KeepCalls(cast("CallLog", None)),  # reads are not kept
            )
        )

    async def handler(self) -> Any:
        details = cast("grpc.HandlerCallDetails", _Details(METHOD))
        return (await self._chain.intercept_service(self._mounted, details)).unary_unary

    async def _mounted(self, _details: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_unary_rpc_method_handler(self._answer)

    async def _answer(self, _request: Any, _context: Any) -> credits_pb2.GetBalanceResponse:
        await self.go.wait()
        return credits_pb2.GetBalanceResponse()


class _Details:
    def __init__(self, method: str) -> None:
        self.method = method


async def refused(handler: Any, key: str, seconds: float = 60.0) -> None:
    try:
        await handler(credits_pb2.GetBalanceRequest(), Context(key, seconds))
    except Refused:
        return
    raise AssertionError("it was let in")


async def measure(calls: int, profile: cProfile.Profile | None) -> None:
    door = Door()
    handler = await door.handler()
    first, known = door.keys.add(), door.keys.add()
    inside = asyncio.create_task(handler(credits_pb2.GetBalanceRequest(), Context(first, 60.0)))
    await asyncio.sleep(0)
    await refused(handler, known)
    await report("key known by heart", door, calls, profile, lambda: refused(handler, known))
    await report("too little time", door, calls, profile, lambda: refused(handler, known, 0.01))
    door.keys.go.clear()
    others = [door.keys.add() for _ in range(WAITING_FOR_LOOKUPS)]
    asking = [asyncio.create_task(refused(handler, one)) for one in others]
    for _ in range(5):
        await asyncio.sleep(0)
    unknown = door.keys.add()
    await report("key not known, door full", door, calls, profile, lambda: refused(handler, unknown))
    door.keys.go.set()
    door.go.set()
    await asyncio.gather(inside, *asking, return_exceptions=True)


async def report(name: str, door: Door, calls: int, profile: cProfile.Profile | None, one: Any) -> None:
    asked, begun = door.keys.asked, time.process_time()
    if profile is not None:
        profile.enable()
    for _ in range(calls):
        await one()
    if profile is not None:
        profile.disable()
    micros = (time.process_time() - begun) * 1e6 / calls
    print(f"{name:26} {micros:6.0f} µs of CPU a refusal, {door.keys.asked - asked} lookups")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=2_000, help="of each kind")
    parser.add_argument("--profile", action="store_true", help="where the time goes; itself slow")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log_to(Path(folder))
        profile = cProfile.Profile() if arguments.profile else None
        asyncio.run(measure(arguments.calls, profile))
    if profile is not None:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(25)


if __name__ == "__main__":
    main()
