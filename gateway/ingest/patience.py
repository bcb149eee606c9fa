"""Patience: a step is tried again while that can help; what fails for good becomes a value, not a crash."""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import stamina
import structlog
from google.rpc.status_pb2 import Status

from gateway.ingest.durable import JSON
from services.domain.errors import Conflict, DeadlineTooShort, InternalFailure, ServiceError, StoreDown
from services.domain.ids import JobId
from services.runtime.status import error_of, status_of

log = structlog.get_logger(__name__)

T = TypeVar("T")

FAILED = "error"
"""The key under which a failed step's result carries its status."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long a step is tried. Waits double from the first to the longest."""

    attempts: int = 6
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 30.0
    total_seconds: float = 300.0

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
                    return await self._tried(work, self.attempts, self.total_seconds)
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
        self, work: Callable[[], Awaitable[T]], attempts: int | None, seconds: float | None
    ) -> T:
        tries = stamina.retry_context(
            on=_wait_for,
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


def _wait_for(exception: Exception) -> bool | float:
    """False to give up, True to wait as planned, or the seconds that the error asks for."""
    error = exception if isinstance(exception, ServiceError) else error_of(exception)
    if isinstance(error, Conflict | DeadlineTooShort):
        # Other writers won every race; or a service did not answer in the time that a step gives it.
        return True
    if error.retry_after_seconds is None:
        return False
    return True if error.retry_after_seconds <= 1 else error.retry_after_seconds
