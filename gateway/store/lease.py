"""Leases: which run of a job's workflow counts. What a run writes that has lost its job is refused.

A run takes its job when it begins (`Jobs.claim`), which raises the job's epoch. A process that slept while
another did its work wakes up with an epoch of the past: every write of the gateway's stores compares it in
the transaction that writes, and every call to a service asks before it is made.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from services.domain.ids import JobId


class JobTakenOver(BaseException):
    """Another run has the job. Nothing that handles errors may go on with it, so it is no Exception."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The run of a job with this epoch; later runs have greater ones."""

    job: JobId
    epoch: int

    def check(self, epoch: int) -> None:
        """Raises JobTakenOver when the job's epoch is a later run's."""
        if epoch > self.epoch:
            raise JobTakenOver


@dataclass(frozen=True, slots=True)
class _Held:
    lease: Lease
    confirm: Callable[[Lease], Awaitable[None]]


_held: ContextVar[_Held | None] = ContextVar("lease", default=None)


@contextmanager
def held(lease: Lease, confirm: Callable[[Lease], Awaitable[None]]) -> Iterator[None]:
    """What is done inside, is done by that run. `confirm` raises JobTakenOver when the lease is lost."""
    token = _held.set(_Held(lease, confirm))
    try:
        yield
    finally:
        _held.reset(token)


def lease_on(job: JobId) -> Lease | None:
    """The lease under which a job is written to; None for writes that are no run's, as a cancellation."""
    now = _held.get()
    return now.lease if now is not None and now.lease.job == job else None


async def confirm() -> None:
    """Raises JobTakenOver when this is a run that has lost its job."""
    now = _held.get()
    if now is not None:
        await now.confirm(now.lease)
