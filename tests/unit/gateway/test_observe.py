"""What calls are counted by: the method and the code, and nothing of whose they are."""

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gateway.interceptors.observe import OpenTelemetryMeter
from services.metering import BOUNDS_SECONDS


def test_labels_are_the_method_and_the_code_alone() -> None:
    reader = InMemoryMetricReader()
    meter = OpenTelemetryMeter(MeterProvider([reader]))
    meter.record("/palimpsest.v1.RecallService/Recall", "OK", 0.2)
    meter.record("/palimpsest.v1.RecallService/Recall", "NOT_FOUND", 0.1)
    data: Any = reader.get_metrics_data()
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    points = [
        (metric.name, dict(point.attributes)) for metric in scope.metrics for point in metric.data.data_points
    ]
    expected = [
        {"method": "/palimpsest.v1.RecallService/Recall", "code": code} for code in ("OK", "NOT_FOUND")
    ]
    assert points == [
        (name, labels) for name in ("palimpsest.calls", "palimpsest.call.seconds") for labels in expected
    ]
    times = next(metric for metric in scope.metrics if metric.name == "palimpsest.call.seconds")
    assert [tuple(point.explicit_bounds) for point in times.data.data_points] == [BOUNDS_SECONDS] * 2
