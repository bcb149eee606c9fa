"""Sessions: a small pool of our own. Each of its threads holds one connection with one session in the space.

A call waits for a free thread. One that is cancelled while its sentence is under way leaves the thread to
finish it; nothing else hears the answer. Made after a fork, never before.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import stamina
from opentelemetry.trace import SpanKind

from services import metering, tracing
from services.stores.errors import StoreUnavailable
from services.stores.graph.nebula import statements
from services.stores.graph.nebula.failures import NebulaFailure, Trouble
from services.stores.graph.nebula.settings import NebulaSettings, hosts_and_ports
from services.stores.graph.nebula.statements import Sentence
from services.stores.graph.nebula.wire import Answer, Wire

COMPONENT = "graph"


class Sessions:
    """Sends sentences. `in_space`: sessions use the space of the settings, which must be there then."""

    def __init__(self, settings: NebulaSettings, *, in_space: bool = True) -> None:
        self._settings = settings
        self._in_space = in_space
        self._threads = ThreadPoolExecutor(settings.sessions, "nebula")
        self._own = threading.local()
        self._lock = threading.Lock()
        self._open: set[Wire] = set()
        self._turns = count()

    async def send(self, sentence: Sentence) -> Answer:
        """The answer, after as many attempts as the settings allow and the sentence bears.

        Raises StoreUnavailable; NebulaFailure where the vertex to update is missing, or for our mistake.
        """
        settings = self._settings
        try:
            async for attempt in stamina.retry_context(
                on=lambda error: (
                    sentence.repeatable and isinstance(error, NebulaFailure) and error.trouble.passes
                ),
                attempts=settings.max_attempts,
                timeout=None,
                wait_initial=settings.retry_first_wait_seconds,
                wait_max=settings.retry_longest_wait_seconds,
                wait_jitter=settings.retry_first_wait_seconds,
            ):
                with (
                    attempt,
                    tracing.span(f"call {COMPONENT}", SpanKind.CLIENT),
                    metering.timed(metering.STORE_SECONDS, store=COMPONENT, access="call"),
                ):
                    loop = asyncio.get_running_loop()
                    return await loop.run_in_executor(self._threads, self._send, sentence)
        except NebulaFailure as failure:
            if failure.trouble.passes:
                raise StoreUnavailable(COMPONENT) from failure
            raise
        raise AssertionError("the last attempt returns or raises")

    async def send_all(self, sentences: Iterable[Sentence]) -> Sequence[Answer]:
        """The answers of sentences that need not wait for each other, in their order.

        When one fails, the others are left to end first.
        """
        results = await asyncio.gather(*map(self.send, sentences), return_exceptions=True)
        answers = [answer for answer in results if not isinstance(answer, BaseException)]
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return answers

    async def update_all(self, sentences: Iterable[Sentence]) -> None:
        """Sends updates; a vertex that is not there has nothing to update."""

        async def update(sentence: Sentence) -> None:
            try:
                await self.send(sentence)
            except NebulaFailure as failure:
                if failure.trouble is not Trouble.MISSING:
                    raise

        results = await asyncio.gather(*map(update, sentences), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def close(self) -> None:
        """Waits for sentences under way, signs all sessions out. Idempotent; no call may follow."""
        await asyncio.to_thread(self._threads.shutdown)
        with self._lock:
            wires, self._open = self._open, set()
        for wire in wires:
            await asyncio.to_thread(wire.close)

    def _send(self, sentence: Sentence) -> Answer:
        """In a thread of the pool."""
        wire: Wire | None = getattr(self._own, "wire", None)
        if wire is None:
            wire = self._connect()
            self._own.wire = wire
        try:
            return wire.send(sentence)
        except NebulaFailure as failure:
            if failure.trouble.spoils:
                self._forget(wire, resumes=failure.trouble is Trouble.LOST)
            raise
        except BaseException:
            self._forget(wire, resumes=True)
            raise

    def _forget(self, wire: Wire, *, resumes: bool) -> None:
        """A session that outlives its connection is gone on with: servers allow few, and keep them long."""
        self._own.wire = None
        with self._lock:
            self._open.discard(wire)
        session = wire.drop()
        self._own.left = (wire.address, session) if resumes and session is not None else None

    def _connect(self) -> Wire:
        """A session at one of the addresses, each in its turn; the last failure if none takes us."""
        left: tuple[tuple[str, int], int] | None = getattr(self._own, "left", None)
        self._own.left = None
        if left is not None:
            with contextlib.suppress(NebulaFailure):
                return self._resume(*left)
        addresses = hosts_and_ports(self._settings.addresses)
        first = next(self._turns)
        for turn in range(first, first + len(addresses)):
            try:
                return self._sign_in(addresses[turn % len(addresses)])
            except NebulaFailure as failure:
                last = failure
        raise last

    def _resume(self, address: tuple[str, int], session: int) -> Wire:
        wire = Wire(*address, self._settings.connect_timeout_ms)
        wire.resume(session, self._settings.call_timeout_ms)
        with self._lock:
            self._open.add(wire)
        return wire

    def _sign_in(self, address: tuple[str, int]) -> Wire:
        settings = self._settings
        wire = Wire(*address, settings.connect_timeout_ms)
        try:
            wire.sign_in(settings.user, settings.password.get_secret_value(), settings.call_timeout_ms)
            if self._in_space:
                wire.send(statements.use(settings.space))
        except BaseException:
            wire.close()
            raise
        with self._lock:
            self._open.add(wire)
        return wire
