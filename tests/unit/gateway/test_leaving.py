"""A call whose caller leaves is carried on to its end and kept, as far as there is room for such."""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from gateway.interceptors.chain import finished
from gateway.interceptors.keep import KeepCalls
from gateway.store.calls import Call as Kept
from gateway.store.calls import CallLog
from tests.unit.gateway.test_keep import END, ENDED, a_call


class Kepts:
    """A log in memory."""

    def __init__(self) -> None:
        self.calls: list[Kept] = []

    async def record(self, call: Kept) -> None:
        self.calls.append(call)


class Handler:
    """Handles a call when it is let, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.entered = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended = False
        self._error = error

    async def __call__(self) -> Any:
        self.entered.set()
        await self.go_on.wait()
        self.ended = True
        if self._error is not None:
            raise self._error
        return ENDED


def keeping(log: Kepts, most_left: int = 10) -> KeepCalls:
    return KeepCalls(cast("CallLog", log), most_left)


async def leave(keep: KeepCalls, handler: Handler) -> None:
    """A call that is cancelled while it is handled."""
    call = a_call("MemoryService/EndStatement", END, ENDED)
    call.response = None

    async def whole(handling: Awaitable[Any]) -> None:
        async with keep.around(call):
            call.response = await finished(call, handling)

    task = asyncio.ensure_future(whole(handler()))
    await handler.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_a_caller_left_is_done_and_kept() -> None:
    log, handler = Kepts(), Handler()
    keep = keeping(log)
    await leave(keep, handler)
    assert log.calls == []
    handler.go_on.set()
    await keep.close(60)
    assert handler.ended
    assert [(call.action, call.targets, call.revision) for call in log.calls] == [
        ("EndStatement", ("s-1",), 7)
    ]


async def test_what_then_fails_is_not_kept() -> None:
    log, handler = Kepts(), Handler(ValueError("canary"))
    keep = keeping(log)
    await leave(keep, handler)
    handler.go_on.set()
    await keep.close(60)
    assert (handler.ended, log.calls) == (True, [])


async def test_above_their_number_calls_without_a_caller_are_cut_short() -> None:
    log, first, second = Kepts(), Handler(), Handler()
    keep = keeping(log, most_left=1)
    await leave(keep, first)
    await leave(keep, second)
    for handler in (first, second):
        handler.go_on.set()
    await keep.close(60)
    assert (first.ended, second.ended, len(log.calls)) == (True, False, 1)


async def test_a_stop_waits_for_them_so_long_and_no_longer() -> None:
    log, handler = Kepts(), Handler()
    keep = keeping(log)
    await leave(keep, handler)
    await keep.close(0)
    assert (handler.ended, log.calls) == (False, [])
