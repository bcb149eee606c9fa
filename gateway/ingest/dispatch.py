"""Dispatch: no accepted job is forgotten. Hands over what a crash left, and undoes what time undoes."""

import asyncio

import structlog

from gateway.ingest.pipeline import WORKFLOWS, Pipeline
from gateway.store.stores import Stores

log = structlog.get_logger(__name__)


class Dispatcher:
    """Looks at start for every unfinished job, then every few seconds for jobs that nobody took."""

    def __init__(self, stores: Stores, pipeline: Pipeline, every_seconds: float) -> None:
        self._stores = stores
        self._pipeline = pipeline
        self._every_seconds = every_seconds
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Submits all unfinished jobs: the engine knows those it has, so none runs twice."""
        for job in await self._stores.jobs.unfinished():
            if job.kind in WORKFLOWS:
                await self._pipeline.submit(job)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                for job in await self._stores.jobs.pending():
                    await self._pipeline.submit(job)
                await self._stores.sweep()
            except Exception:
                # A store that is down now is looked at again in a moment; nothing here can be lost.
                log.exception("sweep failed")
            await self._pause()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._every_seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
