"""Patience: a step is tried again while that can help; what fails for good becomes a value, not a crash.

What a model's provider asks us to wait is waited for once: by the engine, which repeats one message, or,
where that is longer than the engine waits, by the step, which repeats them all.
"""

import base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import stamina
import structlog
from google.rpc.status_pb2 import Status

from gateway.ingest.durable import JSON
from services.domain.errors import (
    Conflict,
    DeadlineTooShort,
    InternalFailure,
    ModelBusy,
    ModelFailed,
    ServiceError,
    StoreDown,
)
from services.domain.ids import JobId
from services.runtime.status import error_of, status_of

log = structlog.get_logger(__name__)

T = TypeVar("T")

FAILED = "error"
"""The key under which a failed step's result carries its status."""


_JOBS = 10_000


class Budgets:
    """How often the steps of each job may try a model again. What succeeds pays for half a try.

    Many chunks of one job meet the same failing model: each for itself would ask it as often as a step may.
    Kept by the process: a job that another one goes on with begins with a whole budget.
    """

    def __init__(self, tries: int) -> None:
        self._tries = tries
        self._left: OrderedDict[JobId, float] = OrderedDict()
        """Of jobs that have used some."""

    def take(self, job: JobId) -> bool:
        """Whether there was a try left; it is used then."""
        left = self._left.get(job, self._tries)
        if left < 1:
            return False
        self._left[job] = left - 1
        self._left.move_to_end(job)
        while len(self._left) > _JOBS:
            self._left.popitem(last=False)
        return True

    def earn(self, job: JobId) -> None:
        left = self._left.get(job)
        if left is None:
            return
        self._left[job] = left + 0.5
        if self._left[job] >= self._tries:
            del self._left[job]


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long a step is tried. Waits double from the first to the longest."""

    attempts: int = 6
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 30.0
    total_seconds: float = 300.0
    models: Budgets = field(default_factory=lambda: Budgets(40))
    """Of a job with eight chunks at work each may try as often as the only chunk of another."""

    async def attempt(
        self, job: JobId, step: str, work: Callable[[], Awaitable[JSON]], *, publishes: bool = False
    ) -> JSON:
        """The result of `work`, or `{"error": …}` with the typed error that remained. Never raises.

        Work that `publishes` waits for a store that is away as long as that lasts: a revision that was begun
        is completed by whoever writes next, so a job can't say that it failed.
        """
        while True:
            try:
                with structlog.contextvars.bound_contextvars(job=job):
                    done = await self._tried(work, self.attempts, self.total_seconds, job)
                    self.models.earn(job)
                    return done
            except Exception as exception:
                error = error_of(exception)
                if publishes and isinstance(error, StoreDown):
                    log.warning("a store is away", job=job, step=step, component=error.metadata["component"])
                    continue
                if isinstance(error, InternalFailure):
                    log.exception("step failed", job=job, step=step)
                return {FAILED: base64.b64encode(status_of(error).SerializeToString()).decode()}

    async def insist(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, however long its stores are away. Raises what trying again can't help."""
        return await self._tried(work, None, None)

    async def _tried(
        self,
        work: Callable[[], Awaitable[T]],
        attempts: int | None,
        seconds: float | None,
        job: JobId | None = None,
    ) -> T:
        def again(exception: Exception) -> bool | float:
            error = exception if isinstance(exception, ServiceError) else error_of(exception)
            wait = _wait_for(error)
            if wait is not True and seconds is not None and wait > seconds:
                return False
            if wait and job is not None and isinstance(error, ModelFailed) and not self.models.take(job):
                return False
            return wait

        tries = stamina.retry_context(
            on=again,
            attempts=attempts,
            timeout=seconds,
            wait_initial=self.first_wait_seconds,
            wait_max=self.longest_wait_seconds,
        )
        async for attempt in tries:
            with attempt:
                return await work()
        raise AssertionError("unreachable: the last attempt raises")


def status_in(result: JSON) -> Status | None:
    """The status of a failed step's result; None for one that succeeded."""
    failed = result.get(FAILED)
    return None if failed is None else Status.FromString(base64.b64decode(str(failed)))


def _wait_for(error: ServiceError) -> bool | float:
    """False to give up, True to wait as planned, or the seconds that the error asks for."""
    if isinstance(error, Conflict | DeadlineTooShort):
        # Other writers won every race; or a service did not answer in the time that a step gives it.
        return True
    if error.retry_after_seconds is None or (isinstance(error, ModelBusy) and error.waited):
        return False
    return True if error.retry_after_seconds <= 1 else error.retry_after_seconds
