"""What a call can fail with, read from the rich status that the server sends.

CallError                 the server refused or failed the call; `reason` says why
├── Unauthenticated       no valid API key
├── PermissionRefused     the key lacks a scope, or the tenant is suspended
├── NotFound              what the call names isn't there
├── InvalidRequest        `violations` lists every field that breaks a rule
├── OutOfCredits          fewer credits than the call may cost
└── TryAgain              the same call may succeed later; `retry_after_seconds` if the server says when
    ├── Unreachable       no answer from the server at all
    └── TooLate           no answer within the deadline
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "palimpsest"
TRAILER = "grpc-status-details-bin"

_CUT_SHORT = "Internal error from Core"
"""What gRPC says of a stream that ended while it was written to, before the server's own word had come."""

_CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class Violation:
    """A field of the request, and what is wrong with it."""

    field: str
    description: str


class CallError(Exception):
    """A call that failed.

    `reason` is the name of an ErrorReason without its prefix, such as `GRAPH_NOT_FOUND`; of an answer that
    is not the product's own it is the gRPC code. `resource` names what it is about, where the server says.
    `status` is the whole rich status.
    """

    def __init__(self, status: status_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status
        self.code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
        self.message: str = status.message
        self.reason = self.code.name
        self.metadata: Mapping[str, str] = {}
        self.violations: Sequence[Violation] = ()
        self.retry_after_seconds: float | None = None
        self.request_id = ""
        self.resource = ""
        for detail in status.details:
            self._read(detail)

    def _read(self, detail: AnyMessage) -> None:
        match detail.type_url.rpartition(".")[2]:
            case "ErrorInfo":
                info = error_details_pb2.ErrorInfo.FromString(detail.value)
                if info.domain == DOMAIN:
                    self.reason, self.metadata = info.reason, dict(info.metadata)
            case "BadRequest":
                request = error_details_pb2.BadRequest.FromString(detail.value)
                self.violations = [Violation(f.field, f.description) for f in request.field_violations]
            case "RetryInfo":
                retry = error_details_pb2.RetryInfo.FromString(detail.value)
                self.retry_after_seconds = retry.retry_delay.ToMilliseconds() / 1000
            case "RequestInfo":
                self.request_id = error_details_pb2.RequestInfo.FromString(detail.value).request_id
            case "ResourceInfo":
                self.resource = error_details_pb2.ResourceInfo.FromString(detail.value).resource_name
            case _:
                pass  # QuotaFailure says no more than message and metadata

    def __str__(self) -> str:
        wrong = "; ".join(
            f"{v.field}: {v.description}" if v.field else v.description for v in self.violations
        )
        named = f": {self.resource}" if self.resource and self.code is grpc.StatusCode.NOT_FOUND else ""
        return f"{self.reason}: {wrong or self.message}{named}"


class Unauthenticated(CallError):
    """No valid API key."""


class PermissionRefused(CallError):
    """The key lacks a scope, or the tenant is suspended."""


class NotFound(CallError):
    """What the call names isn't there, or is another tenant's."""


class InvalidRequest(CallError):
    """The request breaks a rule; `violations` lists all of them."""


class OutOfCredits(CallError):
    """Fewer credits than the call may cost, or more than it allows."""


class TryAgain(CallError):
    """The same call may succeed later."""


class Unreachable(TryAgain):
    """No answer from the server at all."""


class TooLate(TryAgain):
    """No answer within the deadline; whether the call took effect is not known."""


_BY_REASON: Mapping[str, type[CallError]] = {
    "INSUFFICIENT_CREDITS": OutOfCredits,
    "MAX_CREDITS_EXCEEDED": OutOfCredits,
}
_BY_CODE: Mapping[grpc.StatusCode, type[CallError]] = {
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: PermissionRefused,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.UNAVAILABLE: TryAgain,
    grpc.StatusCode.DEADLINE_EXCEEDED: TooLate,
    grpc.StatusCode.ABORTED: TryAgain,
}


def error_of_status(status: status_pb2.Status) -> CallError:
    """The error that a rich status tells: that of a call, or of a job or chunk that failed."""
    plain = CallError(status)
    kind = _BY_REASON.get(plain.reason) or _BY_CODE.get(plain.code)
    if kind is None:
        kind = TryAgain if plain.retry_after_seconds is not None else CallError
    return kind(status)


def error_of_call(call: grpc.aio.AioRpcError) -> CallError:
    """The error of a failed call, from its trailers; without them it comes from the transport."""
    for name, value in call.trailing_metadata() or ():
        if name == TRAILER and isinstance(value, bytes):
            try:
                return error_of_status(status_pb2.Status.FromString(value))
            except DecodeError:
                break
    bare = status_pb2.Status(code=call.code().value[0], message=call.details() or call.code().name)
    lost = call.code() is grpc.StatusCode.UNAVAILABLE or call.details() == _CUT_SHORT
    return Unreachable(bare) if lost else error_of_status(bare)
