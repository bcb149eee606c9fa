"""Dispatch: no accepted job is forgotten. Hands over what a crash left, and undoes what time undoes."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence

import structlog

from gateway.ingest.pipeline import WORKFLOWS, Pipeline
from gateway.store.stores import Stores
from services import metering
from services.stores.errors import StoreError

log = structlog.get_logger(__name__)


class Dispatcher:
    """Looks at start for every unfinished job, then every few seconds for jobs that nobody took.

    Each time it says that this process lives (docs/operations.md, "A process that does not come back").
    """

    def __init__(
        self,
        stores: Stores,
        pipeline: Pipeline,
        every_seconds: float,
        executor_id: str,
        sweeps: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        """`sweeps` are done each time as well: what time begins."""
        self._sweeps = sweeps
        self._stores = stores
        self._pipeline = pipeline
        self._executor_id = executor_id
        self._instance = uuid.uuid4().hex
        self._every_seconds = every_seconds
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Submits all unfinished jobs: the engine knows those it has, so none runs twice."""
        await self._stores.executors.start(self._executor_id, self._instance)
        for job in await self._stores.jobs.unfinished():
            if job.kind in WORKFLOWS:
                await self._pipeline.submit(job)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await self._task
        try:
            await self._stores.executors.stop(self._executor_id, self._instance)
        except StoreError:
            log.warning("the end was not noted", executor=self._executor_id)

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._beat()
                for job in await self._stores.jobs.pending():
                    await self._pipeline.submit(job)
                for sweep in (self._stores.sweep, *self._sweeps):
                    await sweep()
                if metering.enabled():
                    metering.tell_backlog(await self._stores.backlog.numbers())
            except Exception:
                # A store that is down now is looked at again in a moment; nothing here can be lost.
                log.exception("sweep failed")
            await self._pause()

    async def _beat(self) -> None:
        if not await self._stores.executors.beat(self._executor_id, self._instance):
            # Both go on: a job that one took over from the other is lost to it. But it is wrong.
            log.error("another process runs under this executor id", executor=self._executor_id)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._every_seconds):
                await self._stopping.wait()
        except TimeoutError:
            return
