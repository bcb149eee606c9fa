"""Traces: spans of this process, and the context that ties those of others to them (W3C Trace Context).

Where no exporter was set up (services/runtime/telemetry.py) a span costs microseconds and goes nowhere. It
has a name, a code, times and counts: never a text, an id of a user's thing, or what an exception said.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

TRACE_PARENT = "traceparent"

_TRACER = trace.get_tracer("palimpsest")
_W3C = TraceContextTextMapPropagator()


@contextmanager
def span(name: str, kind: SpanKind = SpanKind.INTERNAL, **attributes: str | int | float) -> Iterator[Span]:
    """A span around what is done inside. Texts of exceptions stay out: they may hold what a user wrote."""
    with _TRACER.start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as made:
        try:
            yield made
        except BaseException as error:
            made.set_attribute("error.type", type(error).__qualname__)
            raise


def enabled() -> bool:
    """Whether spans of this process go anywhere."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def carried() -> str:
    """The present context as a `traceparent`; "" outside of any span that is recorded."""
    carrier: dict[str, str] = {}
    if trace.get_current_span().is_recording():
        _W3C.inject(carrier)
    return carrier.get(TRACE_PARENT, "")


@contextmanager
def continued(parent: str) -> Iterator[None]:
    """What is done inside belongs to the trace of `parent`; "", or what is no such text, changes nothing."""
    token = context.attach(_W3C.extract({TRACE_PARENT: parent}, context.get_current())) if parent else None
    try:
        yield
    finally:
        if token is not None:
            context.detach(token)


def metadata() -> tuple[tuple[str, str], ...]:
    """What a call takes along."""
    parent = carried()
    return ((TRACE_PARENT, parent),) if parent else ()


def parent_in(found: Mapping[str, str]) -> str:
    """What a call brought."""
    return found.get(TRACE_PARENT, "")
