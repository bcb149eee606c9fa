"""Numbers that a process tells of itself, by OpenTelemetry. Labels are few and known: no tenant, no id.

Where no exporter was set up (services/runtime/telemetry.py) they go nowhere. docs/metrics.md lists them all.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation
from opentelemetry.metrics._internal import _ProxyMeterProvider

_meter = metrics.get_meter("palimpsest")


@dataclass(frozen=True, slots=True)
class Metric:
    """A name of ours, by what Prometheus calls it, and what it is."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    description: str

    @property
    def exposed(self) -> str:
        """As Prometheus reads it; histograms with `_bucket`, `_count`, `_sum` behind."""
        return self.name.replace(".", "_") + ("_total" if self.kind == "counter" else "")


METRICS = (
    Metric("palimpsest.calls", "counter", ("method", "code"), "Calls that a gateway answered"),
    Metric("palimpsest.call.seconds", "histogram", ("method", "code"), "How long they took"),
    Metric("palimpsest.calls.in_flight", "gauge", (), "Calls at work now"),
    Metric("palimpsest.service.seconds", "histogram", ("service", "outcome"), "Calls of ours to services"),
    Metric("palimpsest.store.seconds", "histogram", ("store", "access", "outcome"), "What stores took"),
    Metric("palimpsest.reading.seconds", "histogram", ("source",), "Graphs read into memory"),
    Metric("palimpsest.model.seconds", "histogram", ("outcome",), "HTTP calls to model endpoints"),
    Metric("palimpsest.model.tokens", "counter", ("direction",), "Tokens sent to models, and received"),
    Metric("palimpsest.job.seconds", "histogram", ("kind", "state"), "Jobs from acceptance to end"),
    Metric("palimpsest.jobs.unfinished", "gauge", (), "Jobs that have not ended, of all tenants"),
    Metric("palimpsest.jobs.waiting", "gauge", (), "Of these, jobs that nobody has begun"),
    Metric("palimpsest.jobs.oldest.seconds", "gauge", (), "Age of the oldest unfinished job"),
    Metric("palimpsest.holds.open", "gauge", (), "Holds that are neither settled nor void"),
    Metric("palimpsest.holds.oldest.seconds", "gauge", (), "Age of the oldest open hold"),
    Metric("palimpsest.executors.silent", "gauge", (), "Processes that ended without a word"),
    Metric("palimpsest.goodwill.micros", "gauge", (), "Micro-credits of work not charged, ever"),
)
"""All there are. The backlog is the same in every gateway and worker: take the greatest, not the sum."""

BOUNDS_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0),
)
"""Of the buckets of times, from a read of a store to a long job. OpenTelemetry's own are for milliseconds."""

_HEAD = """# Metrics

Each gateway and worker shows them to Prometheus at `PALIMPSEST_TELEMETRY__METRICS_PORT`; replicas on Ray, of
which nobody could ask each, push theirs to a collector (`PALIMPSEST_TELEMETRY__PUSH_METRICS`). Times are in
seconds; a histogram has `_bucket`, `_count` and `_sum`. No label names a tenant or anything of theirs.

Jobs, holds, executors and goodwill are counted in the database: each process tells the same, so take the
greatest. Dashboards: `k8s/monitoring/dashboards`; alerts: `k8s/base/monitoring.yaml`, each with a runbook.

| metric | kind | labels | what |
|---|---|---|---|"""

_BY_NAME = {metric.name: metric for metric in METRICS}


def create_histogram(name: str, meter: Meter = _meter) -> Histogram:
    """One of `METRICS` that is a time."""
    return meter.create_histogram(
        name,
        unit="s",
        description=_BY_NAME[name].description,
        explicit_bucket_boundaries_advisory=BOUNDS_SECONDS,
    )


SERVICE_SECONDS = create_histogram("palimpsest.service.seconds")
STORE_SECONDS = create_histogram("palimpsest.store.seconds")
MODEL_SECONDS = create_histogram("palimpsest.model.seconds")
JOB_SECONDS = create_histogram("palimpsest.job.seconds")
READING_SECONDS = create_histogram("palimpsest.reading.seconds")
MODEL_TOKENS = _meter.create_counter("palimpsest.model.tokens")
CALLS_IN_FLIGHT = _meter.create_up_down_counter("palimpsest.calls.in_flight")

_backlog: dict[str, float] = {}


def tell_backlog(numbers: Mapping[str, float]) -> None:
    """The newest counts of what lies in the databases, for the next time that somebody asks."""
    _backlog.update(numbers)


def _gauge(name: str) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def told(_: CallbackOptions) -> Iterator[Observation]:
        if name in _backlog:
            yield Observation(_backlog[name])

    return told


for _name in (
    "palimpsest.jobs.unfinished",
    "palimpsest.jobs.waiting",
    "palimpsest.jobs.oldest.seconds",
    "palimpsest.holds.open",
    "palimpsest.holds.oldest.seconds",
    "palimpsest.executors.silent",
    "palimpsest.goodwill.micros",
):
    _meter.create_observable_gauge(_name, [_gauge(_name)], description=_BY_NAME[_name].description)


def enabled() -> bool:
    """Whether numbers of this process go anywhere."""
    return not isinstance(metrics.get_meter_provider(), _ProxyMeterProvider)


@contextmanager
def timed(histogram: Histogram, **labels: str) -> Iterator[None]:
    """Records how long what is done inside takes, and whether it raised (label `outcome`)."""
    began = time.perf_counter()
    outcome = "error"
    try:
        yield
        outcome = "ok"
    finally:
        histogram.record(time.perf_counter() - began, {**labels, "outcome": outcome})


def page() -> str:
    """docs/metrics.md as it should read."""
    rows = [
        f"| `{metric.exposed}` | {metric.kind} | {', '.join(metric.labels)} | {metric.description} |"
        for metric in METRICS
    ]
    return "\n".join([_HEAD, *rows, ""])
