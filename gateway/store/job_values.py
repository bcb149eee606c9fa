"""What a job is to the gateway: who asked for it, where it stands, what it costs, what it came to."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from google.rpc.status_pb2 import Status
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.credits.money import MicroCredits
from gateway.credits.values import NO_COURTESY, Courtesy, Hold
from palimpsest.v1.job_pb2 import JobResult
from services.domain.ids import JobId, Revision
from services.domain.instants import Instant
from services.domain.scope import Scope


class JobKind(StrEnum):
    """What a job does. Names as in palimpsest.v1.JobKind."""

    INGEST = "INGEST"
    ASSERT = "ASSERT"
    REBUILD = "REBUILD"
    IMPORT = "IMPORT"
    ERASURE = "ERASURE"
    RETRACTION = "RETRACTION"
    RETENTION = "RETENTION"


class JobState(StrEnum):
    """Where a job stands. Names as in palimpsest.v1.JobState."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


FINAL = frozenset({JobState.SUCCEEDED, JobState.PARTIAL, JobState.FAILED, JobState.CANCELLED})


Marking = Callable[[AsyncConnection, JobId], Awaitable[None]]
"""What is done for a new job in its transaction, in place of making its graph."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a call asks to be done as a job.

    `payload_hash` (gateway/store/requests.py, `fingerprint`) is of the request as the caller sent it;
    `payload` is what the pipeline reads, 8 KB or 2 MB. `ceiling` is the most that may be charged.
    `text_bytes` count to what the tenant may send in a day.
    """

    scope: Scope
    kind: JobKind
    method: str
    request_key: str
    payload_hash: str
    payload: bytes
    ceiling: MicroCredits
    price_version: str
    text_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the attempts before the present one were charged, and were given back."""

    settled: MicroCredits
    returned: MicroCredits


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands. `version` counts its changes; chunks are kept apart (gateway/store/progress.py).

    `attempt` counts its retries, `hold` is of the present attempt. `left` is what a retry would do; empty
    when nothing is left. While a retry lasts, `result` is of the attempts before.
    """

    id: JobId
    scope: Scope
    kind: JobKind
    state: JobState
    version: int
    request_key: str
    created_at: Instant
    started_at: Instant | None
    updated_at: Instant
    finished_at: Instant | None
    cancel_requested: bool
    result: JobResult
    error: Status | None
    revision: Revision
    hold: Hold
    attempt: int = 0
    left: bytes = b""
    earlier: Earlier = Earlier(MicroCredits(0), MicroCredits(0))

    @property
    def finished(self) -> bool:
        return self.finished_at is not None

    @property
    def workflow(self) -> str:
        """The name of its present attempt to the engine."""
        return self.workflows[-1]

    @property
    def workflows(self) -> Sequence[str]:
        """The names of its attempts, the first one's first."""
        return [self.id, *(f"{self.id}:{attempt}" for attempt in range(1, self.attempt + 1))]


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a list shows. Empty: all."""

    graph: str = ""
    states: Sequence[JobState] = ()
    kind: JobKind | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The job of a call; `fresh` is False when an earlier call with the same request key started it."""

    job: Job
    fresh: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended. `charge` is what was earned; of the rest, `courtesy` taught nothing (capped by day).

    Nothing is charged beyond what steps have spent, nor beyond the hold. `left` is kept for a retry: ids
    and numbers of what failed.
    """

    state: JobState
    charge: MicroCredits
    result: JobResult
    courtesy: Courtesy = NO_COURTESY
    error: Status | None = None
    revision: Revision = Revision(0)
    reason: str = ""
    left: bytes = b""

    def __post_init__(self) -> None:
        assert self.state in FINAL
