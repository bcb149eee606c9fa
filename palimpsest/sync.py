"""The client for code that does not await: the same calls, on an event loop in a thread of its own."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from google.protobuf.message import Message

from palimpsest import client, local, memory
from palimpsest.client import Patience
from palimpsest.memory import Recalled, Said
from palimpsest.tls import Tls
from palimpsest.v1 import job_pb2

T = TypeVar("T")
_END = object()


class Client:
    """As palimpsest.Client, blocking. Usable from several threads; close it, or use it in a `with`."""

    def __init__(
        self,
        target: str = "",
        key: str = "",
        tls: Tls | None = None,
        *,
        timeout_seconds: float = 30,
        patience: Patience | None = None,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="palimpsest", daemon=True)
        self._thread.start()

        async def made() -> client.Client:  # where its loop is
            return client.Client(target, key, tls, timeout_seconds=timeout_seconds, patience=patience)

        try:
            self.within = self.run(made())
            """The client that awaits, whose stubs name the methods."""
        except BaseException:
            self._stop()
            raise

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """As `Client.of`."""
        target, key = (environment.get(f"PALIMPSEST_{name}", "") for name in ("TARGET", "KEY"))
        return cls(local.find(target, environment)[0], key, Tls.of(environment))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for a coroutine on the client's own loop; a caller who is interrupted cancels it."""
        begun = self.submit(work)
        try:
            return begun.result()
        except BaseException:
            begun.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Begins a coroutine on the client's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, method: Any, request: Message, timeout_seconds: float | None = None) -> Any:
        """As `Client.call`; `method` is one of `client.within.memory.AddEpisode` and so on."""
        return self.run(self.within.call(method, request, timeout_seconds))

    def pages(self, method: Any, request: Message, items: str) -> Iterator[Any]:
        """As `Client.pages`."""
        return self._each(self.within.pages(method, request, items))

    def stream(self, method: Any, request: Message, timeout_seconds: float | None = None) -> Iterator[Any]:
        """As `Client.stream`."""
        return self._each(self.within.stream(method, request, timeout_seconds))

    def watch(self, job_id: str) -> Iterator[job_pb2.Job]:
        """As `Client.watch`."""
        return self._each(self.within.watch(job_id))

    def wait(self, job_id: str) -> job_pb2.Job:
        """As `Client.wait`."""
        return self.run(self.within.wait(job_id))

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        try:
            while (item := self.run(_next(items))) is not _END:
                yield item  # type: ignore[misc]  # what is not the end is an item
        finally:
            self._end(items)

    def _end(self, items: AsyncIterator[Any]) -> None:
        """Who stops looking ends the stream."""
        if self._thread.is_alive():
            ended = self.submit(_ended(items))
            if threading.current_thread() is not self._thread:  # where a collector may drop an iterator
                ended.result()

    def close(self) -> None:
        """Idempotent."""
        if self._thread.is_alive():
            self.run(self.within.close())
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Memory:
    """As palimpsest.Memory, blocking."""

    def __init__(self, client: Client, graph: str, *, session: str = "") -> None:
        self._client = client
        self.within = memory.Memory(client.within, graph, session=session)

    def remember(
        self,
        said: str | Iterable[Said],
        *,
        at: datetime | None = None,
        wait: bool = False,
        request_id: str = "",
        source: str = "",
    ) -> job_pb2.Job:
        """As `Memory.remember`."""
        return self._client.run(
            self.within.remember(said, at=at, wait=wait, request_id=request_id, source=source)
        )

    def settle(self) -> Sequence[job_pb2.Job]:
        """As `Memory.settle`."""
        return self._client.run(self.within.settle())

    def recall(
        self,
        question: str,
        *,
        as_of: datetime | None = None,
        token_budget: int = 0,
        max_facts: int | None = None,
        max_passages: int | None = None,
        also: Sequence[str] = (),
    ) -> Recalled:
        """As `Memory.recall`."""
        return self._client.run(
            self.within.recall(
                question,
                as_of=as_of,
                token_budget=token_budget,
                max_facts=max_facts,
                max_passages=max_passages,
                also=also,
            )
        )


async def _next(items: AsyncIterator[T]) -> T | object:
    return await anext(items, _END)


async def _ended(items: AsyncIterator[Any]) -> None:
    if isinstance(items, AsyncGenerator):
        await items.aclose()
