"""The connection to one Milvus server: deadlines, what a server can do, and the errors of the port."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from opentelemetry.trace import SpanKind
from pymilvus import AsyncMilvusClient, MilvusException
from pymilvus.client.types import Status

from services import metering, tracing
from services.stores.errors import StoreError, StoreUnavailable
from services.stores.vectors.options import MilvusOptions

ClientMethod = Callable[..., Awaitable[Any]]
"""A method of AsyncMilvusClient, unbound; most take a collection's name first."""

_RETRIES = 1
"""pymilvus tries 75 times unless told: here once more, over a new connection, which is what a restarted
server needs. Deadlines are ours."""

_CHANNEL = {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_reconnect_backoff_ms": 1_000,
    "grpc.keepalive_permit_without_calls": 0,
}
"""A new connection must really be tried: by default channels to one address share their waiting time. And
Milvus Lite's server cuts off who pings an idle connection every 10 s, as pymilvus would."""

_CODE_GONE = frozenset({100, 101})
"""Collection not found, not loaded: another process dropped it, or the server lost its data directory."""

_CODE_NO_ALIAS = frozenset({100, 1600})

_FINAL = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""Answers that another try would not change."""


class CollectionGone(StoreError):
    """The server doesn't have, or hasn't loaded, a collection that was there."""


@dataclass(frozen=True, slots=True)
class Server:
    """What a server is, and can do."""

    lite: bool
    upserts: bool
    """2.3 files upserted rows under another partition than searches of their scope look in."""


class Connection:
    """Calls of one server. Connects at first use; belongs to one event loop."""

    def __init__(self, options: MilvusOptions) -> None:
        self._options = options
        self._client = AsyncMilvusClient(
            options.uri,
            token=options.token,
            dedicated=True,
            timeout=options.timeout_seconds,
            grpc_options=_CHANNEL,
            **options.tls.arguments(),
        )
        self._known: Server | None = None
        _quiet_client()

    async def server(self) -> Server:
        if self._known is None:
            self._known = _server(await self.call(AsyncMilvusClient.get_server_version))
        return self._known

    async def call(
        self, method: ClientMethod, *names: str, seconds: float | None = None, **arguments: Any
    ) -> Any:
        """Calls the client within a time. Raises StoreUnavailable, CollectionGone or StoreError."""
        try:
            with _observed():
                async with asyncio.timeout(seconds or self._options.timeout_seconds):
                    return await method(self._client, *names, retry_times=_RETRIES, **arguments)
        except (MilvusException, grpc.RpcError, TimeoutError) as error:
            raise _translated(error) from error

    async def setup(self, method: ClientMethod, *names: str, **arguments: Any) -> Any:
        """As `call`, for what may take long."""
        return await self.call(method, *names, seconds=self._options.setup_seconds, **arguments)

    async def target_of(self, alias: str) -> str:
        """The collection that an alias names; "" if there is no such alias."""
        try:
            async with asyncio.timeout(self._options.timeout_seconds):
                told = await self._client.describe_alias(alias, retry_times=_RETRIES)
        except MilvusException as error:
            if error.code in _CODE_NO_ALIAS:
                return ""
            raise _translated(error) from error
        except (grpc.RpcError, TimeoutError) as error:
            raise _translated(error) from error
        return str(told["collection_name"])

    async def close(self) -> None:
        await self._client.close()


@contextmanager
def _observed() -> Iterator[None]:
    with (
        tracing.span("call vectors", SpanKind.CLIENT),
        metering.timed(metering.STORE_SECONDS, store="vectors", access="call"),
    ):
        yield


def _server(version: str) -> Server:
    number = re.match(r"v?(\d+)\.(\d+)", version)
    old = number is not None and (int(number[1]), int(number[2])) < (2, 4)
    return Server(lite=version.startswith("milvus_lite"), upserts=not old)


def _translated(error: Exception) -> StoreError:
    """The port's error for one of the client's."""
    match error:
        case MilvusException(code=code) if code in _CODE_GONE:
            return CollectionGone("a collection of vectors is gone")
        case MilvusException(code=code) if not (
            isinstance(code, grpc.StatusCode) or code == Status.CONNECT_FAILED or error.retriable
        ):
            return StoreError(f"the vectors store refused a call with code {code}")
        case grpc.RpcError() if error.code() in _FINAL:
            return StoreError(f"the vectors store refused a call with {error.code().name}")
        case _:
            return StoreUnavailable("vectors")


def _quiet_client() -> None:
    # The client logs every error with a traceback before raising it: once is enough, where it is handled.
    for name in ("pymilvus.decorators", "pymilvus.client.connection_manager"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
