"""Background: work that goes on when its caller leaves, and is waited for at the end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Keeps tasks alive until they end. Bounded by what the gateway admits."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Waits for what is under way; its errors were its callers' to see."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
