"""Refusals of the bridge: its own, and those of the server, as one JSON shape with an HTTP code."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc

from palimpsest.errors import CallError

_STATUS: Mapping[grpc.StatusCode, int] = {
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNKNOWN: 502,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 412,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DATA_LOSS: 500,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}
OUT_OF_CREDITS = 402
"""RESOURCE_EXHAUSTED for lack of credits: waiting does not help, so it is not 429."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the page is told instead of an answer."""

    status: int
    reason: str
    message: str
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """As JSON."""
        return {"error": {"reason": self.reason, "message": self.message, **self.more}}


class Refused(Exception):
    """Carries a refusal up to where answers are made."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


def refused(status: int, reason: str, message: str, **headers: str) -> Refused:
    """A refusal of the bridge's own."""
    return Refused(Refusal(status, reason, message, headers=headers))


def refusal_of(error: CallError) -> Refusal:
    """The server's refusal: its reason, its words, every violation."""
    more: dict[str, Any] = {"code": error.code.name}
    if error.violations:
        more["violations"] = [{"field": v.field, "description": v.description} for v in error.violations]
    if error.metadata:
        more["metadata"] = dict(error.metadata)
    if error.resource:
        more["resource"] = error.resource
    if error.request_id:
        more["requestId"] = error.request_id
    headers = {}
    if error.retry_after_seconds is not None:
        more["retryAfterSeconds"] = error.retry_after_seconds
        headers["Retry-After"] = str(max(1, round(error.retry_after_seconds)))
    status = _STATUS.get(error.code, 500)
    if error.reason == "INSUFFICIENT_CREDITS":
        status = OUT_OF_CREDITS
    return Refusal(status, error.reason, error.message, more, headers)
