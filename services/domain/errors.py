"""Errors that callers see: one tree, whichever service or the gateway raises them.

ServiceError
├── ValidationFailed        every violation at once
│   └── DocumentTooLarge    (limit, size) in bytes
├── NotFound                absent, or not the caller's: the same answer
│   ├── GraphNotFound, EpisodeNotFound, PassageNotFound, StatementNotFound, EntityNotFound,
│   │   PredicateNotFound, DocumentNotFound, VoiceAspectNotFound, SessionNotFound, SourceNotFound,
│   │   PersonaNotFound
├── StoreDown               (component); safe to repeat
├── Overloaded              (component); safe to repeat
├── RevisionNotReady        (revision); safe to repeat
├── Conflict                lost update: read again, then decide
├── NotMerged               split of what was never merged
├── EndStated               restoring what its own source says has ended
├── DeadlineTooShort        no time left to do the work
├── NotImplementedYet       built later
├── ApplicationUnknown      an internal call that names another service than the one it reached
├── Unauthenticated         the assertion of an internal call is missing or forged
├── GraphErased             a job's graph was erased while it ran
├── ModelFailed             a model gave no usable answer; in the status of a job or chunk
│   ├── ModelDown, EmbeddingDown   safe to repeat
│   ├── ModelBusy           safe to repeat after the wait it asks for
│   ├── ModelAnswerInvalid  not of the asked shape, after one repair
│   ├── ModelAnswerCut      cut off
│   ├── ModelDeclined
│   ├── ModelNotAllowed     the graph's settings let no configured provider see its text
│   └── ModelSetupWrong     settings name what the endpoint does not have
└── InternalFailure         a bug; constant text

The gateway adds its own branches (gateway/errors.py). `reason` names an error for ever; `metadata` carries
its numbers; services/runtime/status.py turns an error into a gRPC status and back. No text of users, host
names or query texts in any of them.
"""

from typing import ClassVar

from services.domain.error_base import Code as Code
from services.domain.error_base import Quota as Quota
from services.domain.error_base import Resource as Resource
from services.domain.error_base import ServiceError as ServiceError
from services.domain.error_base import Violation as Violation
from services.domain.ids import Revision


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


class PredicateNotFound(NotFound):
    """No predicate of this id or name in the graph."""

    reason = "PREDICATE_NOT_FOUND"
    kind = "predicate"


class SourceNotFound(NotFound):
    """The graph has nothing from this source."""

    reason = "SOURCE_NOT_FOUND"
    kind = "source"


class PersonaNotFound(NotFound):
    """The graph has no persona yet."""

    reason = "PERSONA_NOT_FOUND"
    kind = "persona"


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


class EndStated(ServiceError):
    """Nothing closed the statement that could be undone: what it rests on says itself that it ended."""

    code = Code.FAILED_PRECONDITION
    reason = "END_STATED"

    def __init__(self) -> None:
        super().__init__("what it rests on says itself that it ended; nothing can be undone")


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


class ApplicationUnknown(ServiceError):
    """An internal call that names no service, or another one than the one it reached."""

    code = Code.NOT_FOUND
    reason = "APPLICATION_UNKNOWN"

    def __init__(self) -> None:
        super().__init__("no such application")


class Unauthenticated(ServiceError):
    """An internal call without a valid tenant assertion."""

    code = Code.UNAUTHENTICATED
    reason = "ASSERTION_INVALID"

    def __init__(self) -> None:
        super().__init__("the call carries no valid assertion of its tenant")


class GraphErased(ServiceError):
    """The graph of a job was erased while it ran."""

    code = Code.NOT_FOUND
    reason = "GRAPH_ERASED"

    def __init__(self) -> None:
        super().__init__("the graph was erased")


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
    """The model's endpoint limits our rate. Metadata `waited`: it was waited for, as often as may be."""

    code = Code.UNAVAILABLE
    reason = "MODEL_RATE_LIMITED"
    retry_default_seconds = 10.0
    text = "the model limits our rate"

    def __init__(self, retry_after_seconds: float | None = None, *, waited: bool = False) -> None:
        super().__init__(retry_after_seconds=retry_after_seconds)
        if waited:
            self.metadata = {"waited": "true"}

    @property
    def waited(self) -> bool:
        return self.metadata.get("waited") == "true"


class ModelAnswerInvalid(ModelFailed):
    """The answer was not of the asked shape, after one repair."""

    code = Code.INTERNAL
    reason = "MODEL_OUTPUT_INVALID"
    text = "the model's answer was not of the asked shape"


class ModelAnswerCut(ModelFailed):
    """The answer was cut off."""

    code = Code.INTERNAL
    reason = "MODEL_OUTPUT_TRUNCATED"
    text = "the model's answer was cut off"


class ModelDeclined(ModelFailed):
    """The model declined to answer."""

    reason = "MODEL_REFUSED"
    text = "the model declined to answer"


class ModelSetupWrong(ModelFailed):
    """Settings name a model, key or dimension that the endpoint does not have."""

    reason = "MODEL_MISCONFIGURED"
    text = "the model is not set up rightly"


class ModelNotAllowed(ModelFailed):
    """The graph's settings let no configured provider see its text."""

    reason = "MODEL_NOT_ALLOWED"
    text = "the graph's settings allow none of the configured models"


class EmbeddingDown(ModelFailed):
    """Texts can't be embedded now."""

    code = Code.UNAVAILABLE
    reason = "EMBEDDING_UNAVAILABLE"
    retry_default_seconds = 5.0
    text = "texts can't be embedded now"


class InternalFailure(ServiceError):
    """A bug. The text is constant: what went wrong is in our log, under the request id."""

    code = Code.INTERNAL
    reason = "INTERNAL"

    def __init__(self) -> None:
        super().__init__("internal error")
