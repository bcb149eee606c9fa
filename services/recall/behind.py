"""Behind: what is done behind the answers of one service; it ends with that, before the stores are closed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)

LATER_SECONDS = 1.0
"""How long what is done behind an answer waits for it."""


class Behind:
    """Starts tasks, `later_seconds` from now, and holds them until they end."""

    def __init__(self, later_seconds: float = LATER_SECONDS) -> None:
        self._later_seconds = later_seconds
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """Runs it until it ends or this is closed. What it raises, which nobody would hear of, is logged."""
        task = asyncio.create_task(self._later(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        """Waits until nothing is under way; for tests and measurements."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Ends whatever is under way, and waits for that."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _later(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await asyncio.sleep(self._later_seconds)
        try:
            await work()
        except Exception:
            log.exception("failed behind an answer")
