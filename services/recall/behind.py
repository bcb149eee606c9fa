"""Behind: what is done behind the answers of one service; it ends with that, before the stores are closed."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Behind:
    """Starts tasks, and holds them until they end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs it until it ends or this is closed; what it raises is its caller's to handle."""
        task = asyncio.create_task(work)
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
