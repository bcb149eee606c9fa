"""The step that bounds a call's time: its own deadline, or the cap of its RPC."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

from gateway.errors import DeadlineTooShort, Overloaded, ServiceError
from gateway.interceptors.call import DOWNSTREAM_MARGIN_SECONDS, Call

LEAST_SECONDS = 0.02
"""With less than this left no work is begun."""


def _on_time() -> bool:
    """Nothing is ever late."""
    return False


class DeadlineCap:
    """Ends what takes longer than `min(remaining - 50 ms, cap)`; refuses what has no time left.

    While the gateway is late it is that which took the time: the caller is told to come again.
    """

    def __init__(self, late: Callable[[], bool] = _on_time) -> None:
        self._late = late

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        if call.rpc is None:
            yield
            return
        # Typed as a float, it is None for a call without a deadline.
        remaining = cast("float | None", call.context.time_remaining())
        if remaining is None:
            budget = call.rpc.capped_seconds
        else:
            budget = min(remaining - DOWNSTREAM_MARGIN_SECONDS, call.rpc.longest_seconds)
        if budget < LEAST_SECONDS:
            raise self._too_late()
        call.deadline = asyncio.get_running_loop().time() + budget
        timer = asyncio.timeout(budget)
        try:
            async with timer:
                yield
        except TimeoutError as error:
            if timer.expired():
                raise self._too_late("the call took longer than its time") from error
            raise

    def _too_late(self, *text: str) -> ServiceError:
        return Overloaded("the gateway") if self._late() else DeadlineTooShort(*text)
