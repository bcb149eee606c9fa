"""Errors on the wire: from any exception to the tree, from the tree to a gRPC status, and back.

The same rendering serves the gateway and every service, so an error crosses two hops unchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

import grpc
import grpc.aio
from google.protobuf import any_pb2, duration_pb2, message
from google.rpc import error_details_pb2, status_pb2

from palimpsest.internal.v1 import values_pb2
from services.domain import errors
from services.domain.errors import Quota, Resource, ServiceError, Violation
from services.llm import port as models
from services.stores import errors as stores
from services.stores.paging import NotAPosition
from services.wire.facts import receipt_out

DOMAIN = "palimpsest"
TRAILER = "grpc-status-details-bin"
RECEIPTS = "palimpsest-receipts-bin"
"""What model tasks cost that came to nothing; beside the status of a call between services."""

# What a runtime answers for a service that can't: no connection or no replica yet, a full queue, and (Ray
# Serve) no such application yet. Other bare codes mean that a replica was lost: ours carry a trailer always.
_BUSY = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.NOT_FOUND}
)
_OURS = frozenset({grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNIMPLEMENTED})
_CODES = {code.value[0]: code for code in grpc.StatusCode}


@dataclass(frozen=True, slots=True)
class Rendered:
    """What to set on a call's context: code, details, trailing metadata."""

    code: grpc.StatusCode
    details: str
    trailers: tuple[tuple[str, bytes], ...]


def error_of(exception: BaseException) -> ServiceError:
    """The error that a caller is told for any exception; a bug becomes InternalFailure, without its text."""
    match exception:
        case ServiceError():
            return exception
        case stores.StoreUnavailable() | stores.SchemaUnusable():
            return errors.StoreDown(exception.component)
        case stores.WriteConflict() | stores.ScopeErased():
            lost = isinstance(exception, stores.WriteConflict)
            return errors.Conflict() if lost else errors.GraphErased()
        case stores.UnstorableText():
            return errors.ValidationFailed(
                Violation("", "text holds NUL or lone surrogates", "text.storable")
            )
        case NotAPosition():
            return errors.ValidationFailed(Violation("page_token", "is not of this list", "token.bound"))
        case models.EngineError():
            return _of_model(exception)
        case grpc.aio.AioRpcError():
            return error_of_call(exception)
        case _:
            return errors.InternalFailure()


def _of_model(exception: models.EngineError) -> ServiceError:
    match exception:
        case models.ModelUnavailable():
            return errors.ModelDown()
        case models.ModelRateLimited():
            return errors.ModelBusy(exception.retry_after_seconds, waited=exception.waited)
        case models.ModelOutputCut():
            return errors.ModelAnswerCut()
        case models.ModelOutputInvalid():
            return errors.ModelAnswerInvalid()
        case models.ModelRefused():
            return errors.ModelDeclined()
        case models.ModelMisconfigured():
            return errors.ModelSetupWrong()
        case _:
            return errors.InternalFailure()


def status_of(error: ServiceError, request_id: str = "") -> status_pb2.Status:
    """The rich status of an error, as a job keeps it or a call's trailers carry it."""
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=dict(error.metadata))
    details = [info]
    if error.retry_after_seconds is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(max(1, round(error.retry_after_seconds * 1000)))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    if error.quotas:
        quotas = [
            error_details_pb2.QuotaFailure.Violation(subject=quota.subject, description=quota.description)
            for quota in error.quotas
        ]
        details.append(error_details_pb2.QuotaFailure(violations=quotas))
    if error.violations:
        fields = [
            error_details_pb2.BadRequest.FieldViolation(
                field=violation.field, description=violation.description, reason=violation.rule
            )
            for violation in error.violations
        ]
        details.append(error_details_pb2.BadRequest(field_violations=fields))
    if error.resource is not None:
        details.append(
            error_details_pb2.ResourceInfo(
                resource_type=error.resource.kind,
                resource_name=error.resource.name,
                description=error.resource.description,
            )
        )
    if request_id:
        details.append(error_details_pb2.RequestInfo(request_id=request_id))
    status = status_pb2.Status(code=int(error.code), message=error.message)
    for detail in details:
        status.details.append(_packed(detail))
    return status


def error_of_status(status: status_pb2.Status) -> ServiceError:
    """The error that a rich status tells; InternalFailure when it isn't one of ours."""
    info = error_details_pb2.ErrorInfo()
    violations: list[Violation] = []
    quotas: list[Quota] = []
    resource: Resource | None = None
    wait: float | None = None
    for packed in status.details:
        kind = packed.type_url.rpartition(".")[2]
        if kind == "ErrorInfo":
            packed.Unpack(info)
        elif kind == "RetryInfo":
            retry = error_details_pb2.RetryInfo.FromString(packed.value)
            wait = retry.retry_delay.ToMilliseconds() / 1000
        elif kind == "QuotaFailure":
            failure = error_details_pb2.QuotaFailure.FromString(packed.value)
            quotas += [Quota(item.subject, item.description) for item in failure.violations]
        elif kind == "BadRequest":
            request = error_details_pb2.BadRequest.FromString(packed.value)
            violations += [
                Violation(item.field, item.description, item.reason) for item in request.field_violations
            ]
        elif kind == "ResourceInfo":
            found = error_details_pb2.ResourceInfo.FromString(packed.value)
            resource = Resource(found.resource_type, found.resource_name, found.description)
    known = ServiceError.by_reason.get(info.reason) if info.domain == DOMAIN else None
    if known is None:
        return errors.InternalFailure()
    return known.revive(status.message, dict(info.metadata), violations, quotas, resource, wait)


class Miss(StrEnum):
    """How a call ended that no service answered: none of our trailers came back."""

    NOT_REACHED = "not reached"
    """No replica had it: the runtime starts, is gone, or its queue is full."""
    LOST = "lost"
    """A replica may have had it, and was lost under way."""


def missed(call: grpc.aio.AioRpcError) -> Miss | None:
    """How a call was missed; None for one that was answered, or that ran out of its time."""
    if any(key == TRAILER for key, _ in call.trailing_metadata() or ()) or call.code() in _OURS:
        return None
    if call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in (call.details() or ""):
        return None
    return Miss.NOT_REACHED if call.code() in _BUSY else Miss.LOST


def error_of_call(call: grpc.aio.AioRpcError, component: str = "a service") -> ServiceError:
    """The error of a failed call to `component`, from its trailers, or else from the bare code."""
    for key, value in call.trailing_metadata() or ():
        if key == TRAILER:
            return error_of_status(status_pb2.Status.FromString(value))
    match missed(call):
        case Miss.NOT_REACHED:
            return errors.Overloaded(component)
        case Miss.LOST:
            return errors.StoreDown(component)
    if call.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return errors.DeadlineTooShort()
    if call.code() is grpc.StatusCode.UNIMPLEMENTED:
        return errors.NotImplementedYet(component)
    return errors.InternalFailure()


def render(exception: BaseException, request_id: str = "") -> Rendered:
    """Code, text and trailers for any exception. For servicers that report by returning (Ray Serve)."""
    error = error_of(exception)
    trailers = [(TRAILER, status_of(error, request_id).SerializeToString())]
    if isinstance(exception, models.EngineError) and exception.receipts:
        spent = values_pb2.Receipts(receipts=[receipt_out(one) for one in exception.receipts])
        trailers.append((RECEIPTS, spent.SerializeToString()))
    return Rendered(_CODES[int(error.code)], error.message, tuple(trailers))


def receipts_of(exception: BaseException) -> Sequence[values_pb2.Receipt]:
    """What a call to a service cost that failed, by model tasks; `exception` was raised from the call."""
    call = exception.__cause__
    found = call.trailing_metadata() if isinstance(call, grpc.aio.AioRpcError) else None
    for key, value in found or ():
        if key == RECEIPTS and isinstance(value, bytes):
            return values_pb2.Receipts.FromString(value).receipts
    return ()


async def abort(
    context: "grpc.aio.ServicerContext[object, object]", exception: BaseException, request_id: str = ""
) -> NoReturn:
    """Ends a grpc.aio call with the status of an exception; keeps trailers that were set before."""
    rendered = render(exception, request_id)
    kept = tuple(context.trailing_metadata() or ())
    await context.abort(rendered.code, rendered.details, kept + rendered.trailers)


def _packed(detail: message.Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
