"""Connection: one channel to a server, the key on every call, errors as types."""

import asyncio
import copy
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from palimpsest.errors import error_of_call
from palimpsest.tls import SCHEME, Tls
from palimpsest.tracing import carried
from palimpsest.v1 import (
    admin_pb2_grpc,
    credits_pb2_grpc,
    graph_pb2_grpc,
    jobs_pb2_grpc,
    memory_pb2_grpc,
    privacy_pb2_grpc,
    recall_pb2_grpc,
)

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""What the server takes and sends at most."""

Request = TypeVar("Request")
Response = TypeVar("Response")


def new_request_id() -> str:
    """A fresh name for a call that spends or changes something: 32 characters."""
    return uuid.uuid4().hex


def _channel(target: str, tls: Tls | None) -> grpc.aio.Channel:
    options: list[tuple[str, str | int]] = [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ]
    if tls is None and not target.startswith(SCHEME):
        return grpc.aio.insecure_channel(target, options=options)
    tls = tls or Tls()
    return grpc.aio.secure_channel(
        target.removeprefix(SCHEME), tls.credentials(), options=[*options, *tls.options()]
    )


class Connection:
    """A channel to one server. Use it as an async context manager, within one event loop.

    `target` is host:port; with `https://` before it, or with `tls`, the channel is over TLS. `key` goes with
    every call; empty sends none. Stubs are made at first use.
    """

    def __init__(self, target: str, key: str = "", tls: Tls | None = None) -> None:
        """Raises TlsUnusable when a file of `tls` can't be read."""
        self.target = target
        self._key = (("authorization", f"Bearer {key}"),) if key else ()
        self._channel = _channel(target, tls)

    def keyed(self, key: str) -> Self:
        """The same channel under another key, for whoever serves many; it is closed with this one."""
        twin = copy.copy(self)
        twin._key = (("authorization", f"Bearer {key}"),)
        return twin

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (*self._key, *carried())

    @cached_property
    def graphs(self) -> "graph_pb2_grpc.GraphServiceAsyncStub":
        return graph_pb2_grpc.GraphServiceStub(self._channel)

    @cached_property
    def memory(self) -> "memory_pb2_grpc.MemoryServiceAsyncStub":
        return memory_pb2_grpc.MemoryServiceStub(self._channel)

    @cached_property
    def recall(self) -> "recall_pb2_grpc.RecallServiceAsyncStub":
        return recall_pb2_grpc.RecallServiceStub(self._channel)

    @cached_property
    def jobs(self) -> "jobs_pb2_grpc.JobServiceAsyncStub":
        return jobs_pb2_grpc.JobServiceStub(self._channel)

    @cached_property
    def credits(self) -> "credits_pb2_grpc.CreditServiceAsyncStub":
        return credits_pb2_grpc.CreditServiceStub(self._channel)

    @cached_property
    def privacy(self) -> "privacy_pb2_grpc.PrivacyServiceAsyncStub":
        return privacy_pb2_grpc.PrivacyServiceStub(self._channel)

    @cached_property
    def admin(self) -> "admin_pb2_grpc.AdminServiceAsyncStub":
        return admin_pb2_grpc.AdminServiceStub(self._channel)

    async def call(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Request, Response]",
        request: Request,
        timeout_seconds: float | None = None,
    ) -> Response:
        """Calls once. Without a timeout the server's own cap holds. Raises CallError."""
        try:
            return await method(request, metadata=self._metadata(), timeout=timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise error_of_call(error) from error

    async def health(self, name: str, timeout_seconds: float = 10) -> str:
        """What grpc.health.v1 tells of a name: SERVING, NOT_SERVING. Needs no key. Raises CallError."""
        request = health_pb2.HealthCheckRequest(service=name)
        stub: Any = health_pb2_grpc.HealthStub(self._channel)
        answer: health_pb2.HealthCheckResponse = await self.call(stub.Check, request, timeout_seconds)
        return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)

    async def stream(
        self,
        method: "grpc.aio.UnaryStreamMultiCallable[Request, Response]",
        request: Request,
        timeout_seconds: float | None = None,
    ) -> AsyncIterator[Response]:
        """The answers of a stream, until it ends. Raises CallError."""
        call: Any = method(request, metadata=self._metadata(), timeout=timeout_seconds)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise error_of_call(error) from error
        finally:
            call.cancel()

    async def send(
        self,
        method: "grpc.aio.StreamUnaryMultiCallable[Request, Response]",
        requests: Iterable[Request],
        timeout_seconds: float | None = None,
    ) -> Response:
        """Sends a stream, as fast as it is taken. Raises CallError, and what `requests` raises."""
        call: Any = method(metadata=self._metadata(), timeout=timeout_seconds)
        try:
            # Refused before all was sent, the call is over: its answer tells why.
            with suppress(asyncio.InvalidStateError):
                for request in requests:
                    await call.write(request)
                await call.done_writing()
            answer: Response = await call
            return answer
        except grpc.aio.AioRpcError as error:
            raise error_of_call(error) from error
        finally:
            call.cancel()

    async def close(self) -> None:
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
