"""Steps that watch: request id, log and trace, metrics. They hold no text of users and no keys."""

import re
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import structlog
from opentelemetry import metrics
from opentelemetry.trace import SpanKind

from gateway.interceptors.call import Call
from services import metering, tracing

REQUEST_ID = "x-request-id"

log = structlog.get_logger(__name__)

_USABLE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class RequestIds:
    """Gives each call an id, the caller's own if it is usable, and tells it in the trailing metadata."""

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        given = call.metadata(REQUEST_ID)
        call.request_id = given if _USABLE.fullmatch(given) else uuid.uuid4().hex
        call.context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        with structlog.contextvars.bound_contextvars(request_id=call.request_id):
            yield


class LogAndTrace:
    """One line and one span a call; the span belongs to the caller's trace, if he has one."""

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        began = time.perf_counter()
        with (
            tracing.continued(call.metadata(tracing.TRACE_PARENT)),
            tracing.span(call.method, SpanKind.SERVER) as span,
        ):
            try:
                yield
            finally:
                span.set_attribute("rpc.grpc.status_code", call.code.value[0])
                log.info(
                    "call",
                    method=call.method,
                    code=call.code.name,
                    milliseconds=round(1000 * (time.perf_counter() - began), 1),
                    key=None if call.key is None else call.key.id,
                )


class CallMeter(Protocol):
    """Counts calls. Labels are the method and the code alone: no tenant, no graph."""

    def record(self, method: str, code: str, seconds: float) -> None: ...


class OpenTelemetryMeter:
    """Counts through OpenTelemetry; where no exporter is set up this costs nothing."""

    def __init__(self, provider: metrics.MeterProvider | None = None) -> None:
        meter = metrics.get_meter("palimpsest.gateway", meter_provider=provider)
        self._calls = meter.create_counter("palimpsest.calls", description="Calls by method and code")
        self._seconds = metering.create_histogram("palimpsest.call.seconds", meter)

    def record(self, method: str, code: str, seconds: float) -> None:
        labels = {"method": method, "code": code}
        self._calls.add(1, labels)
        self._seconds.record(seconds, labels)


class Metrics:
    """Counts and times each call."""

    def __init__(self, meter: CallMeter) -> None:
        self._meter = meter

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        began = time.perf_counter()
        metering.CALLS_IN_FLIGHT.add(1)
        try:
            yield
        finally:
            metering.CALLS_IN_FLIGHT.add(-1)
            self._meter.record(call.method, call.code.name, time.perf_counter() - began)
