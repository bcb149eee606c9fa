"""Errors that callers see: one tree, whichever service or the gateway raises them.

ServiceError
├── ValidationFailed        every violation at once
│   └── DocumentTooLarge    (limit, size) in bytes
├── NotFound                absent, or not the caller's: the same answer
│   ├── GraphNotFound
│   ├── EpisodeNotFound
│   ├── PassageNotFound
│   ├── StatementNotFound
│   ├── DocumentNotFound
│   ├── EntityNotFound
│   ├── VoiceAspectNotFound
│   └── SessionNotFound
├── StoreDown               (component); safe to repeat
├── Overloaded              (component); safe to repeat
├── RevisionNotReady        (revision); safe to repeat
├── Conflict                lost update: read again, then decide
├── NotMerged               split of what was never merged
├── DeadlineTooShort        no time left to do the work
├── NotImplementedYet       built later
├── Unauthenticated         the assertion of an internal call is missing or forged
├── ModelFailed             a model gave no usable answer
│   ├── ModelDown           safe to repeat
│   ├── ModelBusy           safe to repeat after the wait it asks for
│   ├── ModelAnswerInvalid  not of the asked shape, after one repair
│   ├── ModelDeclined
│   └── ModelSetupWrong     settings name what the endpoint does not have
└── InternalFailure         a bug; constant text

The gateway adds its own branches (gateway/errors.py). `reason` names an error for ever; `metadata` carries
its numbers; services/runtime/status.py turns an error into a gRPC status and back. No text of users, host
names or query texts in any of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, TypeVar

from services.domain.ids import Revision

E = TypeVar("E", bound="ServiceError")


class Code(IntEnum):
    """The status codes of gRPC that we answer with; numbers as in google.rpc.Code."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


@dataclass(frozen=True, slots=True)
class Violation:
    """A field (dotted path in the request) and what is wrong with it."""

    field: str
    description: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit that was met: whose (`subject`, never another tenant's) and which."""

    subject: str
    description: str


@dataclass(frozen=True, slots=True)
class Resource:
    """The thing an error is about: its kind, and the name by which the caller asked."""

    kind: str
    name: str = ""
    description: str = ""


class ServiceError(Exception):
    """Something a caller must be told. Subclasses fix `code`, `reason` and whether repeating can help.

    `retry_after_seconds` is set exactly when repeating the same call can succeed.
    """

    code: ClassVar[Code]
    reason: ClassVar[str] = ""
    retry_default_seconds: ClassVar[float | None] = None

    by_reason: ClassVar[dict[str, type["ServiceError"]]] = {}
    """Every error that has a reason, for reading a status back."""

    message: str
    metadata: Mapping[str, str]
    violations: Sequence[Violation]
    quotas: Sequence[Quota]
    resource: Resource | None
    retry_after_seconds: float | None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "reason" in cls.__dict__:
            assert cls.reason not in ServiceError.by_reason, f"two errors with reason {cls.reason}"
            ServiceError.by_reason[cls.reason] = cls

    def __init__(
        self,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[Violation] = (),
        quotas: Sequence[Quota] = (),
        resource: Resource | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.metadata = dict(metadata or {})
        self.violations = tuple(violations)
        self.quotas = tuple(quotas)
        self.resource = resource
        wait = self.retry_default_seconds
        self.retry_after_seconds = (
            wait if wait is None or retry_after_seconds is None else retry_after_seconds
        )

    @classmethod
    def revive(
        cls: type[E],
        message: str,
        metadata: Mapping[str, str],
        violations: Sequence[Violation] = (),
        quotas: Sequence[Quota] = (),
        resource: Resource | None = None,
        retry_after_seconds: float | None = None,
    ) -> E:
        """An error of this class from the parts that a status carries."""
        error = cls.__new__(cls)
        ServiceError.__init__(
            error,
            message,
            metadata=metadata,
            violations=violations,
            quotas=quotas,
            resource=resource,
            retry_after_seconds=retry_after_seconds,
        )
        return error


class ValidationFailed(ServiceError):
    """The request breaks rules of its fields; carries all of them."""

    code = Code.INVALID_ARGUMENT
    reason = "VALIDATION_FAILED"

    def __init__(self, *violations: Violation) -> None:
        fields = ", ".join(sorted({violation.field for violation in violations if violation.field}))
        super().__init__(f"invalid: {fields}" if fields else "the request is invalid", violations=violations)


class DocumentTooLarge(ValidationFailed):
    """`limit` and `size` are bytes of UTF-8."""

    reason = "DOCUMENT_TOO_LARGE"

    def __init__(self, field: str, limit: int, size: int) -> None:
        ServiceError.__init__(
            self,
            f"the text has {size} bytes; the limit is {limit}",
            metadata={"limit": str(limit), "size": str(size)},
            violations=[Violation(field, f"at most {limit} bytes", "document.size")],
        )


class NotFound(ServiceError):
    """Absent in the caller's tenant. That it exists in another's is never told."""

    code = Code.NOT_FOUND
    kind: ClassVar[str] = ""

    def __init__(self, name: str = "") -> None:
        super().__init__(f"no such {self.kind}", resource=Resource(self.kind, name))


class GraphNotFound(NotFound):
    """A read of a graph that no write has made."""

    reason = "GRAPH_NOT_FOUND"
    kind = "graph"


class EpisodeNotFound(NotFound):
    """No episode of this id in the graph."""

    reason = "EPISODE_NOT_FOUND"
    kind = "episode"


class PassageNotFound(NotFound):
    """No passage of this id in the graph."""

    reason = "PASSAGE_NOT_FOUND"
    kind = "passage"


class StatementNotFound(NotFound):
    """No statement of this id in the graph."""

    reason = "STATEMENT_NOT_FOUND"
    kind = "statement"


class DocumentNotFound(NotFound):
    """No document, or no such version of it, in the graph."""

    reason = "DOCUMENT_NOT_FOUND"
    kind = "document"


class EntityNotFound(NotFound):
    """No entity of this id or name in the graph."""

    reason = "ENTITY_NOT_FOUND"
    kind = "entity"


class VoiceAspectNotFound(NotFound):
    """No voice aspect of this id in the graph."""

    reason = "VOICE_ASPECT_NOT_FOUND"
    kind = "voice aspect"


class SessionNotFound(NotFound):
    """No session of this id in the graph."""

    reason = "SESSION_NOT_FOUND"
    kind = "session"


class StoreDown(ServiceError):
    """`component` (graph, vectors, memory, ledger, jobs, or a service) can't be reached now."""

    code = Code.UNAVAILABLE
    reason = "STORE_UNAVAILABLE"
    retry_default_seconds = 1.0

    def __init__(self, component: str) -> None:
        super().__init__(f"{component} can't be reached now", metadata={"component": component})


class Overloaded(ServiceError):
    """`component` has more work than it may take, or is starting."""

    code = Code.UNAVAILABLE
    reason = "OVERLOADED"
    retry_default_seconds = 1.0

    def __init__(self, component: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(
            f"{component} is busy; try again",
            metadata={"component": component},
            retry_after_seconds=retry_after_seconds,
        )


class RevisionNotReady(ServiceError):
    """The graph has not reached the revision that the caller wants to read, in the time given."""

    code = Code.UNAVAILABLE
    reason = "REVISION_NOT_READY"
    retry_default_seconds = 0.5

    def __init__(self, wanted: Revision, published: Revision) -> None:
        super().__init__(
            f"revision {wanted} is not published yet",
            metadata={"wanted": str(wanted), "published": str(published)},
        )


class Conflict(ServiceError):
    """Somebody changed it first."""

    code = Code.ABORTED
    reason = "CONFLICT"

    def __init__(self, message: str = "it was changed meanwhile; read it again") -> None:
        super().__init__(message)


class NotMerged(ServiceError):
    """A split of entities that were never merged."""

    code = Code.FAILED_PRECONDITION
    reason = "NOT_MERGED"

    def __init__(self) -> None:
        super().__init__("these entities are not merged")


class DeadlineTooShort(ServiceError):
    """Too little of the caller's time is left to do the work."""

    code = Code.DEADLINE_EXCEEDED
    reason = "DEADLINE_TOO_SHORT"

    def __init__(self, message: str = "too little time is left") -> None:
        super().__init__(message)


class NotImplementedYet(ServiceError):
    """An RPC, or a part of one, that is not built yet."""

    code = Code.UNIMPLEMENTED
    reason = "NOT_IMPLEMENTED"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not built yet", metadata={"what": what})


class Unauthenticated(ServiceError):
    """An internal call without a valid tenant assertion."""

    code = Code.UNAUTHENTICATED
    reason = "ASSERTION_INVALID"

    def __init__(self) -> None:
        super().__init__("the call carries no valid assertion of its tenant")


class ModelFailed(ServiceError):
    """A model gave no usable answer to a task (`stage`)."""

    code = Code.FAILED_PRECONDITION
    text: ClassVar[str] = ""

    def __init__(self, stage: str = "", retry_after_seconds: float | None = None) -> None:
        super().__init__(
            self.text, metadata={"stage": stage} if stage else {}, retry_after_seconds=retry_after_seconds
        )


class ModelDown(ModelFailed):
    """The model's endpoint can't be reached."""

    code = Code.UNAVAILABLE
    reason = "MODEL_UNAVAILABLE"
    retry_default_seconds = 5.0
    text = "the model can't be reached now"


class ModelBusy(ModelFailed):
    """The model's endpoint limits our rate."""

    code = Code.UNAVAILABLE
    reason = "MODEL_RATE_LIMITED"
    retry_default_seconds = 10.0
    text = "the model limits our rate"


class ModelAnswerInvalid(ModelFailed):
    """The answer was not of the asked shape, after one repair."""

    reason = "MODEL_OUTPUT_INVALID"
    text = "the model's answer was not of the asked shape"


class ModelDeclined(ModelFailed):
    """The model declined to answer."""

    reason = "MODEL_REFUSED"
    text = "the model declined to answer"


class ModelSetupWrong(ModelFailed):
    """Settings name a model, key or dimension that the endpoint does not have."""

    reason = "MODEL_MISCONFIGURED"
    text = "the model is not set up rightly"


class InternalFailure(ServiceError):
    """A bug. The text is constant: what went wrong is in our log, under the request id."""

    code = Code.INTERNAL
    reason = "INTERNAL"

    def __init__(self) -> None:
        super().__init__("internal error")
