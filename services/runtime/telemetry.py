"""Telemetry of a process: where its spans and numbers go. Set up once, by a composition root."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
)
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from prometheus_client import start_http_server
from pydantic import BaseModel, ConfigDict, Field

HOST = "127.0.0.1"


class TelemetrySettings(BaseModel):
    """What leaves a process about itself. By default nothing does."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    traces: Literal["", "otlp", "file"] = ""
    """Where spans go: to an OpenTelemetry collector, to a file of JSON lines, or nowhere."""
    trace_file: str = ""
    """The file, for traces=file; processes may share it."""
    trace_share: float = Field(default=1.0, ge=0, le=1)
    """Of traces that begin here, how many are kept. Those that a caller began are kept if he keeps them."""
    otlp_endpoint: str = "http://127.0.0.1:4317"
    """gRPC endpoint of the collector."""
    push_metrics: bool = False
    """Send metrics to the collector as well, as replicas on Ray must: nobody can ask each of them."""
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Port that answers Prometheus at /metrics, on the gateway's address; 0 takes a free one; empty: none."""


class Telemetry:
    """What was set up; `close` sends what waits. `port` is that of the metrics, 0 for none."""

    def __init__(self, port: int, closers: list[Callable[[], object]]) -> None:
        self.port = port
        self._closers = closers

    def close(self) -> None:
        for close in self._closers:
            close()


def start(settings: TelemetrySettings, process: str, host: str = HOST) -> Telemetry:
    """Sets up spans and numbers of this process, which is named `process`. Once a process.

    Raises OSError when the port is taken.
    """
    resource = Resource.create({"service.name": f"palimpsest-{process}"})
    closers: list[Callable[[], object]] = []
    processor = _processor(settings)
    if processor is not None:
        sampler = ParentBased(TraceIdRatioBased(settings.trace_share))
        tracers = TracerProvider(resource=resource, sampler=sampler)
        tracers.add_span_processor(processor)
        trace.set_tracer_provider(tracers)
        closers.append(tracers.shutdown)
    readers: list[MetricReader] = []
    if settings.push_metrics:
        exporter = OTLPMetricExporter(endpoint=settings.otlp_endpoint)
        readers.append(PeriodicExportingMetricReader(exporter, export_interval_millis=15_000))
    port = 0
    if settings.metrics_port is not None:
        readers.append(PrometheusMetricReader())
        server, thread = start_http_server(settings.metrics_port, addr=host)
        port = int(server.server_port)
        closers += [server.shutdown, server.server_close, thread.join]
    if readers:
        meters = MeterProvider(metric_readers=readers, resource=resource)
        metrics.set_meter_provider(meters)
        closers.append(meters.shutdown)
    return Telemetry(port, closers)


def _processor(settings: TelemetrySettings) -> SpanProcessor | None:
    match settings.traces:
        case "otlp":
            return BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.otlp_endpoint))
        case "file":
            file = Path(settings.trace_file).open("a", encoding="utf-8")  # noqa: SIM115 - until the process ends
            return SimpleSpanProcessor(ConsoleSpanExporter(out=file, formatter=_line))
        case _:
            return None


def _line(span: ReadableSpan) -> str:
    return f"{span.to_json(indent=None)}\n"
