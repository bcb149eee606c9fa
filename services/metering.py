"""Numbers that a process tells of itself, by OpenTelemetry. Labels are few and known: no tenant, no id.

Where no exporter was set up (services/runtime/telemetry.py) they go nowhere. docs/metrics.md lists them all.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.metrics._internal import _ProxyMeterProvider

_meter = metrics.get_meter("palimpsest")

SERVICE_SECONDS = _meter.create_histogram(
    "palimpsest.service.seconds", unit="s", description="Calls of gateways and workers to services"
)
STORE_SECONDS = _meter.create_histogram(
    "palimpsest.store.seconds", unit="s", description="Transactions and calls of stores"
)
MODEL_SECONDS = _meter.create_histogram(
    "palimpsest.model.seconds", unit="s", description="HTTP calls to model endpoints"
)
MODEL_TOKENS = _meter.create_counter(
    "palimpsest.model.tokens", description="Tokens sent to models, and received from them"
)
CALLS_IN_FLIGHT = _meter.create_up_down_counter("palimpsest.calls.in_flight", description="Calls at work")
JOB_SECONDS = _meter.create_histogram(
    "palimpsest.job.seconds", unit="s", description="Jobs from their acceptance to their end"
)


_backlog: dict[str, float] = {}


def tell_backlog(numbers: Mapping[str, float]) -> None:
    """The newest counts of what lies in the databases, for the next time that somebody asks."""
    _backlog.update(numbers)


def _gauge(name: str) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def told(_: CallbackOptions) -> Iterator[Observation]:
        if name in _backlog:
            yield Observation(_backlog[name])

    return told


for _name, _unit, _described in (
    ("palimpsest.jobs.unfinished", "", "Jobs that have not ended, of all tenants"),
    ("palimpsest.jobs.waiting", "", "Of these, jobs that nobody has begun"),
    ("palimpsest.jobs.oldest.seconds", "s", "Age of the oldest of them"),
    ("palimpsest.holds.open", "", "Holds that are neither settled nor void"),
    ("palimpsest.holds.oldest.seconds", "s", "Age of the oldest of them"),
    ("palimpsest.executors.silent", "", "Executors that ended without a word, or are cut off"),
    ("palimpsest.goodwill.micros", "", "Micro-credits of work that taught nothing and was not charged, ever"),
):
    _meter.create_observable_gauge(_name, [_gauge(_name)], unit=_unit, description=_described)


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
