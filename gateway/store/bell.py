"""A bell for each job: who watches one in this process is woken at once, and needn't ask the database."""

import asyncio
from collections import defaultdict

from services.domain.ids import JobId


class Bell:
    """Rings in this process only; watchers in others see a change at their next look."""

    def __init__(self) -> None:
        self._waiting: dict[JobId, set[asyncio.Event]] = defaultdict(set)

    def ring(self, job: JobId) -> None:
        for event in self._waiting.get(job, ()):
            event.set()

    def listen(self, job: JobId) -> "Listener":
        """Hears every ring from now on: listen first, then look, then wait."""
        return Listener(job, self._waiting)


class Listener:
    """One watcher's ear. Use as a context manager, so that none is left behind."""

    def __init__(self, job: JobId, waiting: dict[JobId, set[asyncio.Event]]) -> None:
        self._job = job
        self._waiting = waiting
        self._event = asyncio.Event()

    def __enter__(self) -> "Listener":
        self._waiting[self._job].add(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        ears = self._waiting[self._job]
        ears.discard(self._event)
        if not ears:
            del self._waiting[self._job]

    async def wait(self, at_most_seconds: float) -> None:
        """Until the next ring, or until the time is over; a ring since the last wait counts."""
        try:
            async with asyncio.timeout(at_most_seconds):
                await self._event.wait()
        except TimeoutError:
            return
        self._event.clear()
