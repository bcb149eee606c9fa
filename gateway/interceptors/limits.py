"""Steps that shed load: what a tenant may do at a time, and what the whole gateway may."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.errors import Overloaded, RateLimited
from gateway.interceptors.call import Call
from gateway.interceptors.places import Places
from gateway.store.tenants import Limits

TRACKED_TENANTS = 10_000


@dataclass(slots=True)
class _Use:
    """What a tenant has left of its rate, and has in flight."""

    tokens: float
    refilled_at: float
    calls: int = 0
    streams: int = 0


class TenantLimits:
    """Refuses calls above a tenant's rate, and above its calls and streams in flight.

    `defaults` are for tenants without limits of their own; `seconds` is a clock that never goes back.
    """

    def __init__(self, defaults: Limits, max_streams: int, seconds: Callable[[], float]) -> None:
        self._defaults = defaults
        self._max_streams = max_streams
        self._seconds = seconds
        self._uses: OrderedDict[str, _Use] = OrderedDict()

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        if call.rpc is None:
            yield
            return
        caller = call.caller
        limits = caller.limits.over(self._defaults)
        use = self._use(caller.owner or caller.key, limits)
        self._take(use, limits)
        if call.rpc.stream:
            if use.streams >= self._max_streams:
                raise RateLimited("streams", f"at most {self._max_streams} streams at once")
            use.streams += 1
        else:
            if use.calls >= limits.max_in_flight:
                raise RateLimited("calls", f"at most {limits.max_in_flight} calls at once")
            use.calls += 1
        try:
            yield
        finally:
            if call.rpc.stream:
                use.streams -= 1
            else:
                use.calls -= 1

    def _take(self, use: _Use, limits: Limits) -> None:
        now = self._seconds()
        most = float(limits.requests_per_second + limits.request_burst)
        use.tokens = min(most, use.tokens + (now - use.refilled_at) * limits.requests_per_second)
        use.refilled_at = now
        if use.tokens < 1:
            wait = (1 - use.tokens) / limits.requests_per_second
            raise RateLimited("rate", f"at most {limits.requests_per_second} calls a second", wait)
        use.tokens -= 1

    def _use(self, owner: str, limits: Limits) -> _Use:
        full = float(limits.requests_per_second + limits.request_burst)
        use = self._uses.setdefault(owner, _Use(full, self._seconds()))
        self._uses.move_to_end(owner)
        while len(self._uses) > TRACKED_TENANTS:
            self._uses.popitem(last=False)
        return use


class Admission:
    """Lets in as many calls as there are places, and so many streams; a few more wait, the rest are refused.

    Draining, it lets in nothing: what is handled ends, streams are ended.
    """

    def __init__(self, max_in_flight: int, max_waiting: int, max_streams: int, wait_seconds: float) -> None:
        self._places = Places(max_in_flight, max_waiting, wait_seconds)
        self._max_streams = max_streams
        self._calls = 0
        self._streams: set[asyncio.Timeout] = set()
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    def late(self) -> bool:
        """Whether there is more work than this process keeps up with."""
        return self._places.late

    async def drain(self, seconds: float) -> None:
        """From now on refuses what is new; returns when all has ended, or the time is over."""
        self._draining = True
        for stream in self._streams:
            stream.reschedule(asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        if call.rpc is None:
            yield
            return
        if self._draining:
            raise Overloaded("the gateway")
        self._calls += 1
        self._idle.clear()
        try:
            async with self._stream() if call.rpc.stream else self._call(call):
                yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    @asynccontextmanager
    async def _stream(self) -> AsyncIterator[None]:
        if len(self._streams) >= self._max_streams:
            raise Overloaded("the gateway")
        drained = asyncio.timeout(None)
        try:
            async with drained:
                self._streams.add(drained)
                try:
                    yield
                finally:
                    self._streams.discard(drained)
        except TimeoutError as error:
            if drained.expired():
                raise Overloaded("the gateway") from error
            raise

    @asynccontextmanager
    async def _call(self, call: Call) -> AsyncIterator[None]:
        seconds = call.deadline - asyncio.get_running_loop().time()
        async with self._places.taken(_owner(call), seconds):
            if self._draining:
                raise Overloaded("the gateway")
            yield


def _owner(call: Call) -> str:
    """Whose places a call takes: its tenant's, or its operator's key's."""
    return "" if call.key is None else call.caller.owner or call.caller.key
