"""The durable engine: workflows whose finished steps survive a crash. The one module that knows DBOS.

A workflow is a coroutine over a `Run`; every effect and every read of the outside happens in a step, so that
a replay takes the same path. Steps run at least once: their effects must be idempotent. What goes into and
comes out of a step is small JSON of ids and numbers, never text of users.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from dbos import DBOS, DBOSClient, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from sqlalchemy import make_url

from gateway.store.lease import JobTakenOver
from services.stores.chunks import in_chunks
from services.stores.errors import StoreUnavailable
from services.stores.sql.failures import translated

log = structlog.get_logger(__name__)

JSON = dict[str, Any]
"""What crosses a step's border: plain JSON values."""

Step = Callable[[], Coroutine[Any, Any, JSON]]
Workflow = Callable[["Run", str], Awaitable[None]]

QUEUE = "ingest"
_APPLICATION = "palimpsest"
_VERSION = "ingest-1"
"""Of the workflows: an executor takes those of its own version."""
_BUSY_SECONDS = 30.0
CONCURRENCY = 16


@dataclass(frozen=True, slots=True)
class DurableSettings:
    """`executor_id` is unique and stable: an executor resumes only its own unfinished work when it starts."""

    database_url: str
    """`sqlite:////path` or `postgresql://…`: the engine's own tables."""
    executor_id: str
    concurrency: int = CONCURRENCY
    """Workflows that this process runs at once; the others wait in the database. 0: it runs none."""
    polling_seconds: float = 0.1
    drain_seconds: float = 10
    """How long `close` waits for running workflows; what remains is resumed at the next start."""


def migrate_workflows(database_url: str, app_role: str | None = None) -> None:
    """Brings the engine's own tables to its version, as its `launch` does where it may. Idempotent.

    On PostgreSQL `app_role` may then use them. Blocking. Raises StoreUnavailable.
    """
    role = app_role if make_url(database_url).get_backend_name() == "postgresql" else None
    with translated("workflows"):
        DBOS.migrate(database_url, application_role=role)


def hand_over(database_url: str, executor_id: str) -> Sequence[str]:
    """Gives what an executor left unfinished back to the queue, for any other to take.

    Answers the ids of these workflows. Idempotent; also when the executor lives after all: its runs then have
    lost their jobs. Blocking. Raises StoreUnavailable.
    """
    with translated("workflows"):
        client = DBOSClient(system_database_url=database_url, application_name=_APPLICATION)
        try:
            # The client has no public way to this; tests/contracts hold the library to it.
            database = client._sys_db
            pending = database.get_pending_workflows(executor_id, _VERSION)
            return [
                one.workflow_id
                for one in pending
                if database.reenqueue_for_recovery(one.workflow_id, [executor_id], QUEUE)
            ]
        finally:
            client.destroy()


class Run:
    """One run of a workflow: the only way to do anything from inside one."""

    async def step(self, name: str, work: Step) -> JSON:
        """Does `work` unless an earlier run of this workflow finished it; answers its result.

        `name` carries the version of the step. Order of calls must not depend on anything but step results.
        """

        async def done() -> JSON:  # the library tells coroutine functions from others by their kind
            return await work()

        return await DBOS.run_step_async({"name": name}, done)


async def all_pages(run: Run, name: str, read: Callable[[str], Coroutine[Any, Any, JSON]]) -> Sequence[JSON]:
    """Every page of a listing, each read in a step of its own, with where it goes on as `after`.

    The last one may be a failure: a page without `after` is the last, whatever it is.
    """
    pages: list[JSON] = []
    while not pages or pages[-1].get("after"):
        after = str(pages[-1]["after"]) if pages else ""
        pages.append(await run.step(f"{name}/{len(pages)}", partial(read, after)))
    return pages


class DurableEngine:
    """Runs registered workflows of this process. One engine a process: the library keeps global state."""

    def __init__(self, settings: DurableSettings) -> None:
        self._settings = settings
        self._registered: dict[str, Callable[[str], Coroutine[Any, Any, None]]] = {}
        self._launched = False
        self._closing = False
        self._running: dict[asyncio.Task[None], str] = {}
        DBOS.destroy(destroy_registry=True)
        DBOS(config=self._config())

    def register(self, name: str, workflow: Workflow) -> None:
        """Names a workflow. `name` must stay the same over releases; call before `launch`.

        A workflow that raises is over and never run again: it must bring itself to an end.
        """
        assert not self._launched, "workflows are registered before the engine is launched"

        async def run(argument: str) -> None:
            task = asyncio.current_task()
            assert task is not None, "the library runs a workflow as a task of its own"
            if self._closing:
                raise asyncio.CancelledError
            self._running[task] = argument
            try:
                await workflow(Run(), argument)
            except JobTakenOver:
                # As a run that is cut short: the one that has the job records how it ended.
                log.warning("a run stopped, as another has its job", workflow=argument)
                raise asyncio.CancelledError from None
            finally:
                self._running.pop(task, None)

        self._registered[name] = DBOS.workflow(name=name)(run)

    async def launch(self) -> None:
        """Opens the database and resumes what this executor left unfinished. Workflows run on this loop."""
        runs_none = not self._settings.concurrency
        if runs_none:
            DBOS.listen_queues([])
        DBOS.launch()
        self._launched = True
        # The queue's settings lie in the database: what a process that runs none says of it doesn't count.
        await DBOS.register_queue_async(
            QUEUE,
            worker_concurrency=self._settings.concurrency or CONCURRENCY,
            polling_interval_sec=self._settings.polling_seconds,
            on_conflict="never_update" if runs_none else "update_if_latest_version",
        )

    async def start(self, name: str, workflow_id: str, argument: str, turn: int) -> None:
        """Enqueues a workflow; the same id again changes nothing. The lowest `turn` that waits is next."""
        with SetWorkflowID(workflow_id), SetEnqueueOptions(priority=turn):
            await DBOS.enqueue_workflow_async(QUEUE, self._registered[name], argument)

    async def stop(self, workflow_ids: Sequence[str]) -> None:
        """Workflows go on no further, in any process: those of this one are cut, others at their next step.

        They must be ended by the caller. Idempotent; unknown ids are none.
        """
        if not workflow_ids:
            return
        await DBOS.cancel_workflows_async(list(workflow_ids))
        stopped = set(workflow_ids)
        cut = [task for task, argument in self._running.items() if argument in stopped]
        for task in cut:
            task.cancel()
        await asyncio.gather(*cut, return_exceptions=True)

    async def forget(self, workflow_ids: Sequence[str]) -> None:
        """Removes workflows with all that their steps answered. Idempotent."""
        for chunk in in_chunks(workflow_ids):
            await DBOS.delete_workflows_async(chunk)

    async def remember(self, workflow_ids: Sequence[str]) -> int:
        """How many of these workflows there are."""
        found = 0
        for chunk in in_chunks(workflow_ids):
            found += len(await DBOS.list_workflows_async(workflow_ids=chunk))
        return found

    async def compact(self) -> None:
        """The engine's own SQLite file without what was deleted from it. Raises StoreUnavailable."""
        url = make_url(self._settings.database_url)
        if url.get_backend_name() == "sqlite" and url.database:
            await asyncio.to_thread(_compact, url.database)

    async def close(self) -> None:
        """Waits for running workflows, then cuts them short. What is unfinished stays in the database.

        Cut by cancellation, which nothing records: a step that failed because its stores were closed under it
        would be remembered as failed.
        """
        if self._launched:
            self._closing = True
            if self._running:
                await asyncio.wait(self._running, timeout=self._settings.drain_seconds)
            cut = list(self._running)
            for task in cut:
                task.cancel()
            await asyncio.gather(*cut, return_exceptions=True)
            await asyncio.to_thread(DBOS.destroy)
            # The library made its own pool the loop's, and has just shut it down.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
            self._launched = False

    def _config(self) -> DBOSConfig:
        return DBOSConfig(
            name=_APPLICATION,
            system_database_url=self._settings.database_url,
            executor_id=self._settings.executor_id,
            application_version=_VERSION,
            enable_otlp=False,
            log_level="WARNING",
            # Nothing here waits for notifications; a stop waits for the sleep of who looks for them.
            notification_listener_polling_interval_sec=self._settings.polling_seconds,
        )


def _compact(path: str) -> None:
    with translated("workflows"), closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as database:
        try:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            raise StoreUnavailable("workflows") from error
