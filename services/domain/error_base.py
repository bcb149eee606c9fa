"""What every error that callers see is made of: a code, a reason, details, and when to repeat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, TypeVar

E = TypeVar("E", bound="ServiceError")


class Code(IntEnum):
    """The status codes of gRPC that we answer with; numbers as in google.rpc.Code."""

    CANCELLED = 1
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

    def final(self: E) -> E:
        """The same error of something that repeating the call does not do again."""
        self.retry_after_seconds = None
        return self

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
