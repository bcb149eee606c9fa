"""Client: the public API with typed errors, request ids, repeated calls, pages and watches.

Every call of the API may be repeated: those that change something by their `request_id`, which is made here
where the request has none. So a call that fails for a passing reason is tried again, when the server says to.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc.aio
from google.protobuf.message import Message

from palimpsest import local
from palimpsest.connection import Connection, new_request_id
from palimpsest.errors import TryAgain
from palimpsest.tls import Tls
from palimpsest.v1 import job_pb2
from palimpsest.watching import wait_for, watch_job

Asked = TypeVar("Asked", bound=Message)
Answered = TypeVar("Answered", bound=Message)


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is tried, and how many may be in all: a server in trouble is not asked ever more."""

    attempts: int = 4
    first_wait_seconds: float = 0.2
    longest_wait_seconds: float = 20.0
    """A server that asks for a longer wait gets its wish from the caller: the error is raised."""
    budget: float = 10.0
    """Repetitions that are saved up; each call adds a tenth of one, each repetition takes one."""


class Client:
    """A connection that keeps at it. Use it as an async context manager, within one event loop.

    `target` is host:port, or https://host:port for TLS; empty finds a server of this machine. Safe to share
    between tasks. The stubs are `client.memory`, `client.recall` and so on, for `call` and `pages`.
    """

    def __init__(
        self,
        target: str = "",
        key: str = "",
        tls: Tls | None = None,
        *,
        timeout_seconds: float = 30,
        patience: Patience | None = None,
    ) -> None:
        """`timeout_seconds` is of one try. Raises TlsUnusable when a file of `tls` can't be read."""
        self.connection = Connection(local.find(target)[0], key, tls)
        self.graphs = self.connection.graphs
        self.memory = self.connection.memory
        self.recall = self.connection.recall
        self.jobs = self.connection.jobs
        self.credits = self.connection.credits
        self.privacy = self.connection.privacy
        self.admin = self.connection.admin
        self._timeout_seconds = timeout_seconds
        self._patience = patience or Patience()
        self._saved = self._patience.budget

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """As PALIMPSEST_TARGET, PALIMPSEST_KEY and PALIMPSEST_TLS_… say. Raises TlsUnusable."""
        target, key = (environment.get(f"PALIMPSEST_{name}", "") for name in ("TARGET", "KEY"))
        return cls(local.find(target, environment)[0], key, Tls.of(environment))

    async def call(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Asked, Answered]",
        request: Asked,
        timeout_seconds: float | None = None,
    ) -> Answered:
        """Calls, and tries again what may pass. Fills an empty `request_id`. Raises CallError."""
        name_request(request)
        self._saved = min(self._patience.budget, self._saved + 0.1)
        wait = self._patience.first_wait_seconds
        for attempt in range(1, self._patience.attempts + 1):
            try:
                return await self.connection.call(method, request, timeout_seconds or self._timeout_seconds)
            except TryAgain as error:
                asked = error.retry_after_seconds
                if attempt == self._patience.attempts or not self._may_repeat(asked):
                    raise
                await asyncio.sleep(max(asked or 0.0, wait * random.uniform(0.5, 1)))  # noqa: S311 - spreads callers
                wait = min(2 * wait, self._patience.longest_wait_seconds)
        raise AssertionError("the last attempt returns or raises")

    def _may_repeat(self, asked_seconds: float | None) -> bool:
        if (asked_seconds or 0) > self._patience.longest_wait_seconds or self._saved < 1:
            return False
        self._saved -= 1
        return True

    async def pages(
        self, method: "grpc.aio.UnaryUnaryMultiCallable[Asked, Any]", request: Asked, items: str
    ) -> AsyncIterator[Any]:
        """Everything that a List call lists: `items` names the field of its answers. Raises CallError."""
        page: Any = type(request)()
        page.CopyFrom(request)
        while True:
            answer = await self.call(method, page)
            for item in getattr(answer, items):
                yield item
            if not answer.next_page_token:
                return
            page.page_token = answer.next_page_token

    def stream(
        self,
        method: "grpc.aio.UnaryStreamMultiCallable[Asked, Answered]",
        request: Asked,
        timeout_seconds: float | None = None,
    ) -> AsyncIterator[Answered]:
        """The answers of a stream such as WatchBalance; a broken one is not begun again. Raises CallError."""
        return self.connection.stream(method, request, timeout_seconds)

    def watch(self, job_id: str) -> AsyncIterator[job_pb2.Job]:
        """The job now and after each change until it has ended, over broken streams. Raises CallError."""
        return watch_job(self.connection, job_id)

    async def wait(self, job_id: str) -> job_pb2.Job:
        """The job in its final state, which may be FAILED. Raises CallError."""
        return await wait_for(self.connection, job_id)

    async def close(self) -> None:
        await self.connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def name_request(request: Any) -> None:
    """Gives a request with an empty `request_id` a fresh one, so that repeating it changes nothing more.

    Those within a batch likewise.
    """
    fields = request.DESCRIPTOR.fields_by_name
    if "request_id" in fields and not request.request_id:
        request.request_id = new_request_id()
    for one in request.requests if "requests" in fields else ():
        name_request(one)
