"""The gateway's branches of the error tree, and the one way from any exception to a status.

ServiceError (services/domain/errors.py)
├── InsufficientCredits     (required, available)
├── MaxCreditsExceeded      (required, maximum): more than the caller allows
├── RateLimited             rate or calls in flight; safe to repeat
├── TooManyJobs             unfinished jobs; safe to repeat
├── TooManyGraphs           the tenant's graphs
├── DailyBytesExceeded      text of one day (limit, size); safe to repeat on the next
├── ApiKeyInvalid           missing, malformed, unknown, expired or revoked: one answer for all
├── TenantSuspended
├── ScopeMissing            (scope)
├── RequestIdReused         same request_id, other payload
├── GraphExists, TenantExists    with other settings, another name
├── GraphBeingErased, EntityBeingErased    the latter is safe to repeat
├── CursorExpired           a watch's cursor is too old
├── JobFinished, JobNotFailed
├── JobNotFound, TenantNotFound, ApiKeyNotFound, ChargeNotFound, ErasureNotFound
├── HoldExpired             a hold that has ended; in the status of a job
├── JobCancelled, JobTimedOut, ChunksFailed    in the status of a job
└── (any other exception)   InternalFailure, constant text

`abort` and `status_of` render them; `error_of_call` reads what an internal service answered.
"""

from services.domain.errors import (
    Code,
    Conflict,
    DeadlineTooShort,
    GraphNotFound,
    InternalFailure,
    NotFound,
    NotImplementedYet,
    Overloaded,
    Quota,
    Resource,
    ServiceError,
    ValidationFailed,
    Violation,
)
from services.runtime.status import abort, error_of, error_of_call, error_of_status, status_of

__all__ = [
    "ApiKeyInvalid",
    "ApiKeyNotFound",
    "ChargeNotFound",
    "ChunksFailed",
    "Code",
    "Conflict",
    "CursorExpired",
    "DailyBytesExceeded",
    "DeadlineTooShort",
    "EntityBeingErased",
    "ErasureNotFound",
    "GraphBeingErased",
    "GraphExists",
    "GraphNotFound",
    "HoldExpired",
    "InsufficientCredits",
    "InternalFailure",
    "JobCancelled",
    "JobFinished",
    "JobNotFailed",
    "JobNotFound",
    "JobTimedOut",
    "MaxCreditsExceeded",
    "NotFound",
    "NotImplementedYet",
    "Overloaded",
    "Quota",
    "RateLimited",
    "RequestIdReused",
    "Resource",
    "ScopeMissing",
    "ServiceError",
    "TenantExists",
    "TenantNotFound",
    "TenantSuspended",
    "TooManyGraphs",
    "TooManyJobs",
    "ValidationFailed",
    "Violation",
    "abort",
    "error_of",
    "error_of_call",
    "error_of_status",
    "status_of",
]


class InsufficientCredits(ServiceError):
    """The tenant has fewer credits than the call may cost. Amounts are micro-credits."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "INSUFFICIENT_CREDITS"

    def __init__(self, required: int, available: int) -> None:
        super().__init__(
            f"the call needs {required} micro-credits; {available} are available",
            metadata={"required": str(required), "available": str(available)},
            quotas=[Quota("credits", f"{required} needed, {available} available")],
        )


class MaxCreditsExceeded(ServiceError):
    """The work may cost more than the caller allows. Amounts are micro-credits."""

    code = Code.FAILED_PRECONDITION
    reason = "MAX_CREDITS_EXCEEDED"

    def __init__(self, required: int, maximum: int) -> None:
        super().__init__(
            f"the call needs {required} micro-credits; it allows {maximum}",
            metadata={"required": str(required), "maximum": str(maximum)},
        )


class RateLimited(ServiceError):
    """More calls than the tenant, or the peer, may make now."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "RATE_LIMITED"
    retry_default_seconds = 1.0

    def __init__(self, subject: str, limit: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(
            f"too many calls: {limit}",
            quotas=[Quota(subject, limit)],
            retry_after_seconds=retry_after_seconds,
        )


class TooManyJobs(ServiceError):
    """The tenant has as many unfinished jobs as it may."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "TOO_MANY_JOBS"
    retry_default_seconds = 5.0

    def __init__(self, limit: int) -> None:
        text = f"at most {limit} unfinished jobs"
        super().__init__(text, quotas=[Quota("jobs", text)])


class TooManyGraphs(ServiceError):
    """The tenant has as many graphs as it may: one must be erased before another is made."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "TOO_MANY_GRAPHS"

    def __init__(self, limit: int) -> None:
        text = f"at most {limit} graphs"
        super().__init__(text, metadata={"limit": str(limit)}, quotas=[Quota("graphs", text)])


class DailyBytesExceeded(ServiceError):
    """The tenant has sent as much text today as it may. `limit` and `size` are bytes of UTF-8."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "DAILY_BYTES_EXCEEDED"
    retry_default_seconds = 3600.0

    def __init__(self, limit: int, size: int, retry_after_seconds: float | None = None) -> None:
        text = f"at most {limit} bytes of text a day"
        super().__init__(
            text,
            metadata={"limit": str(limit), "size": str(size)},
            quotas=[Quota("bytes_per_day", text)],
            retry_after_seconds=retry_after_seconds,
        )
        if size > limit:
            self.final()  # no day has room for it


class ApiKeyInvalid(ServiceError):
    """One answer for a key that is missing, malformed, unknown, expired or revoked."""

    code = Code.UNAUTHENTICATED
    reason = "API_KEY_INVALID"

    def __init__(self) -> None:
        super().__init__("no valid API key")


class TenantSuspended(ServiceError):
    """The operator has suspended the tenant."""

    code = Code.PERMISSION_DENIED
    reason = "TENANT_SUSPENDED"

    def __init__(self) -> None:
        super().__init__("the tenant is suspended")


class ScopeMissing(ServiceError):
    """The key may not make this call."""

    code = Code.PERMISSION_DENIED
    reason = "SCOPE_MISSING"

    def __init__(self, scope: str) -> None:
        super().__init__(f"the key lacks the scope {scope}", metadata={"scope": scope})


class RequestIdReused(ServiceError):
    """The request_id named another payload before."""

    code = Code.ALREADY_EXISTS
    reason = "REQUEST_ID_REUSED"

    def __init__(self, request_key: str) -> None:
        super().__init__(
            "the request_id was used with another payload", resource=Resource("request", request_key)
        )


class GraphExists(ServiceError):
    """A graph of this id is there: with other settings, or where an import would make one."""

    code = Code.ALREADY_EXISTS
    reason = "GRAPH_ALREADY_EXISTS"

    def __init__(self, graph: str) -> None:
        super().__init__("a graph of this id exists", resource=Resource("graph", graph))


class GraphBeingErased(ServiceError):
    """The graph, or its tenant, is being erased: what the call is about will not come back."""

    code = Code.FAILED_PRECONDITION
    reason = "GRAPH_BEING_ERASED"

    def __init__(self, graph: str) -> None:
        super().__init__("the graph is being erased", resource=Resource("graph", graph))


class EntityBeingErased(ServiceError):
    """Somebody is being erased from the graph; nothing is written to it until that is done."""

    code = Code.UNAVAILABLE
    reason = "ENTITY_BEING_ERASED"
    retry_default_seconds = 2.0

    def __init__(self, graph: str) -> None:
        super().__init__("an entity is being erased from the graph", resource=Resource("graph", graph))


class TenantExists(ServiceError):
    """A tenant of this id is there, under another name."""

    code = Code.ALREADY_EXISTS
    reason = "TENANT_ALREADY_EXISTS"

    def __init__(self, tenant: str) -> None:
        super().__init__("the tenant exists with another name", resource=Resource("tenant", tenant))


class CursorExpired(ServiceError):
    """What happened since the cursor is not kept any more."""

    code = Code.OUT_OF_RANGE
    reason = "CURSOR_EXPIRED"

    def __init__(self) -> None:
        super().__init__("the cursor is too old; watch again without one")


class JobFinished(ServiceError):
    """The job has ended: nothing to cancel."""

    code = Code.FAILED_PRECONDITION
    reason = "JOB_FINISHED"

    def __init__(self) -> None:
        super().__init__("the job has ended")


class JobNotFailed(ServiceError):
    """No chunk of the job failed, or it still runs, or was cancelled: nothing to retry."""

    code = Code.FAILED_PRECONDITION
    reason = "JOB_NOT_FAILED"

    def __init__(self) -> None:
        super().__init__("the job has not ended with chunks that failed")


class JobNotFound(NotFound):
    """The tenant has no job of this id."""

    reason = "JOB_NOT_FOUND"
    kind = "job"


class TenantNotFound(NotFound):
    """There is no tenant of this id."""

    reason = "TENANT_NOT_FOUND"
    kind = "tenant"


class ApiKeyNotFound(NotFound):
    """There is no key of this id."""

    reason = "API_KEY_NOT_FOUND"
    kind = "API key"


class ChargeNotFound(NotFound):
    """The tenant has no settled charge of this id."""

    reason = "CHARGE_NOT_FOUND"
    kind = "charge"


class ErasureNotFound(NotFound):
    """The tenant has no erasure of this id."""

    reason = "ERASURE_NOT_FOUND"
    kind = "erasure"


class HoldExpired(ServiceError):
    """The hold has ended: nothing can be spent or settled on it."""

    code = Code.ABORTED
    reason = "HOLD_EXPIRED"

    def __init__(self) -> None:
        super().__init__("the hold of credits has ended")


class JobCancelled(ServiceError):
    """Status of a job that its tenant cancelled."""

    code = Code.CANCELLED
    reason = "JOB_CANCELLED"

    def __init__(self) -> None:
        super().__init__("the job was cancelled")


class JobTimedOut(ServiceError):
    """Status of a job that took longer than a job may."""

    code = Code.DEADLINE_EXCEEDED
    reason = "JOB_TIMED_OUT"

    def __init__(self) -> None:
        super().__init__("the job took too long")


class ChunksFailed(ServiceError):
    """Status of a job some of whose chunks failed; each chunk names its own reason."""

    code = Code.UNAVAILABLE
    reason = "CHUNKS_FAILED"
    retry_default_seconds = 5.0

    def __init__(self, failed: int, chunks: int) -> None:
        super().__init__(
            f"{failed} of {chunks} chunks failed", metadata={"failed": str(failed), "chunks": str(chunks)}
        )
