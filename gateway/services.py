"""The gateway's way to the five services: stubs, the tenant assertion, deadlines, errors of the tree."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import grpc
import grpc.aio
import structlog
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.trace import SpanKind

from gateway.store.lease import confirm
from palimpsest.internal.v1 import (
    classifier_pb2_grpc,
    extractor_pb2_grpc,
    preprocessor_pb2_grpc,
    recall_pb2_grpc,
    resolver_pb2_grpc,
)
from services import metering, tracing
from services.domain.errors import (
    ApplicationUnknown,
    Overloaded,
    ServiceError,
    StoreDown,
    Unauthenticated,
)
from services.domain.scope import Scope
from services.runtime.assertion import METADATA_KEY, Signer
from services.runtime.names import AFFINITY, APPLICATION, ROUTED_BY_SCOPE, TRACE
from services.runtime.names import ServiceName as ServiceName
from services.runtime.probing import NOBODYS, PROBE, probing_method
from services.runtime.status import Miss, error_of_call, missed

log = structlog.get_logger(__name__)

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

_MESSAGE_BYTES = 32 * 1024 * 1024
MAX_IN_FLIGHT = 512
"""Calls to one service at once, of all tenants. More are refused: Ray's own queue limits are not seen when
replicas are reached directly, and a queue that only grows helps nobody."""
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
_LEAST_SECONDS = 0.05
_PROBE_SECONDS = 60.0
"""Whoever probes waits less, and leaves."""
_LOST_CALLS = 3
"""How often a call may be lost under way: one that kills its replica must not kill them all."""


def told(failure: grpc.aio.AioRpcError, service: ServiceName) -> ServiceError:
    """The error of a call to a service, as callers may be told it.

    That a service takes neither our assertion nor our name for it is a fault of the installation (another
    secret, a clock that is wrong), which nobody's key mends, and jobs can wait out.
    """
    error = error_of_call(failure, service)
    if isinstance(error, Unauthenticated | ApplicationUnknown):
        log.error("a service does not take the gateway's calls", service=service, reason=error.reason)
        return StoreDown(service)
    return error


class Services:
    """Stubs of the five services, to be called through `call` alone."""

    def __init__(
        self,
        targets: Mapping[ServiceName, str],
        signer: Signer,
        origin: Callable[[Scope], Awaitable[str]] | None = None,
    ) -> None:
        """`targets` are host:port; services that share one share a channel.

        `origin` tells whence the ids of an imported graph follow; without it no graph is imported.
        """
        self._origin = origin
        options = [
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
            # A runtime that comes back is noticed at once; by default a client waits up to two minutes.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        self._channels = {
            target: grpc.aio.insecure_channel(target, options=options) for target in set(targets.values())
        }
        self._signer = signer
        self._in_flight: Counter[ServiceName] = Counter()
        self._of_scope: Counter[Scope] = Counter()
        self._ended = asyncio.Event()
        """Rings when the last call for some graph has ended."""
        by_name = {name: self._channels[target] for name, target in targets.items()}
        self.preprocessor: preprocessor_pb2_grpc.PreprocessorServiceAsyncStub = (
            preprocessor_pb2_grpc.PreprocessorServiceStub(by_name[ServiceName.PREPROCESSOR])
        )
        self.extractor: extractor_pb2_grpc.ExtractorServiceAsyncStub = (
            extractor_pb2_grpc.ExtractorServiceStub(by_name[ServiceName.EXTRACTOR])
        )
        self.classifier: classifier_pb2_grpc.ClassifierServiceAsyncStub = (
            classifier_pb2_grpc.ClassifierServiceStub(by_name[ServiceName.CLASSIFIER])
        )
        self.resolver: resolver_pb2_grpc.ResolverServiceAsyncStub = resolver_pb2_grpc.ResolverServiceStub(
            by_name[ServiceName.RESOLVER]
        )
        self.recall: recall_pb2_grpc.RecallServiceAsyncStub = recall_pb2_grpc.RecallServiceStub(
            by_name[ServiceName.RECALL]
        )
        stubs: Mapping[ServiceName, object] = {
            ServiceName.PREPROCESSOR: self.preprocessor,
            ServiceName.EXTRACTOR: self.extractor,
            ServiceName.CLASSIFIER: self.classifier,
            ServiceName.RESOLVER: self.resolver,
            ServiceName.RECALL: self.recall,
        }
        self._service_of: Mapping[Any, ServiceName] = {
            method: name for name, stub in stubs.items() for method in vars(stub).values()
        }

    async def quiet(self, scope: Scope, at_most_seconds: float) -> None:
        """Waits until no call for a graph is under way from this process, or the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + at_most_seconds
        while self._of_scope[scope] and loop.time() < until:
            self._ended.clear()
            try:
                async with asyncio.timeout(until - loop.time()):
                    await self._ended.wait()
            except TimeoutError:
                return

    async def call(
        self,
        scope: Scope,
        method: "grpc.aio.UnaryUnaryMultiCallable[RequestT, ResponseT]",
        request: RequestT,
        timeout_seconds: float,
    ) -> ResponseT:
        """Calls one method for a scope. Raises ServiceError, never a bare gRPC error.

        A call that reached no replica is repeated for as long as it fits into its time; one that was lost
        under way, a few times: every internal RPC is idempotent (by job, episode or commit id). A run that
        lost its job calls nothing any more: it is told so by JobTakenOver.
        """
        await confirm()
        service = self._service_of[method]
        scope = await self._whole(scope)
        async with self._place(service, scope):
            with (
                tracing.span(f"call {service}", SpanKind.CLIENT),
                metering.timed(metering.SERVICE_SECONDS, service=service.value),
            ):
                return await self._repeated(scope, service, method, request, timeout_seconds)

    async def stream(
        self,
        scope: Scope,
        method: "grpc.aio.UnaryStreamMultiCallable[RequestT, ResponseT]",
        request: RequestT,
        timeout_seconds: float,
    ) -> AsyncGenerator[ResponseT, None]:
        """The answers of a method that streams, as fast as they are taken. Raises ServiceError.

        Never repeated: what was given on can't be taken back.
        """
        service = self._service_of[method]
        scope = await self._whole(scope)
        async with self._place(service, scope):
            call = method(request, timeout=timeout_seconds, metadata=self._metadata(scope, service))
            try:
                async for answer in call:
                    yield answer
            except grpc.aio.AioRpcError as failure:
                raise told(failure, service) from failure
            finally:
                call.cancel()

    async def _whole(self, scope: Scope) -> Scope:
        """With whence the graph's ids follow."""
        if scope.origin or self._origin is None:
            return scope
        return replace(scope, origin=await self._origin(scope))

    async def probe(self, service: ServiceName, store: str = "") -> None:
        """Asks once whether a service answers, or with `store` one that it reads. Raises ServiceError."""
        rpc = probing_method(service)
        method = getattr(getattr(self, service.value), rpc.name)
        metadata = (*self._metadata(NOBODYS, service), (PROBE, store))
        try:
            await method(GetMessageClass(rpc.input_type)(), timeout=_PROBE_SECONDS, metadata=metadata)
        except grpc.aio.AioRpcError as failure:
            raise told(failure, service) from failure

    async def _repeated(
        self,
        scope: Scope,
        service: ServiceName,
        method: "grpc.aio.UnaryUnaryMultiCallable[RequestT, ResponseT]",
        request: RequestT,
        timeout_seconds: float,
    ) -> ResponseT:
        loop = asyncio.get_running_loop()
        ends, pause, lost = loop.time() + timeout_seconds, _FIRST_PAUSE_SECONDS, 0
        while True:
            try:
                return await method(
                    request, timeout=ends - loop.time(), metadata=self._metadata(scope, service)
                )
            except grpc.aio.AioRpcError as failure:
                miss = missed(failure)
                lost += miss is Miss.LOST
                fits = ends - loop.time() > pause + _LEAST_SECONDS
                if miss is None or lost >= _LOST_CALLS or not fits:
                    raise told(failure, service) from failure
            log.info("call repeated", service=service, why=miss)
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # spreads callers, guards nothing
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _metadata(self, scope: Scope, service: ServiceName) -> tuple[tuple[str, str], ...]:
        known = structlog.contextvars.get_contextvars()
        affinity = ((AFFINITY, scope.key),) if service in ROUTED_BY_SCOPE else ()
        return (
            (APPLICATION, service),
            (METADATA_KEY, self._signer.sign(scope)),
            (TRACE, str(known.get("job") or known.get("request_id") or "")),
            *tracing.metadata(),
            *affinity,
        )

    @asynccontextmanager
    async def _place(self, service: ServiceName, scope: Scope) -> AsyncIterator[None]:
        """A place among the calls in flight to a service. Raises Overloaded when there is none."""
        if self._in_flight[service] >= MAX_IN_FLIGHT:
            raise Overloaded(service)
        self._in_flight[service] += 1
        self._of_scope[scope] += 1
        try:
            yield
        finally:
            self._in_flight[service] -= 1
            self._of_scope[scope] -= 1
            if not self._of_scope[scope]:
                del self._of_scope[scope]
                self._ended.set()

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()
