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

    async def close(self, grace_seconds: float = 10) -> None:
        """Waits for what is under way, then cuts it short; its errors were its callers' to see.

        What is cut is work of jobs, which the next start goes on with, or of calls that can be repeated.
        """
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_seconds)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
