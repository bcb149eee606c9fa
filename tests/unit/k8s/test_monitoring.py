"""Alerts and dashboards speak of metrics that there are; each alert has a page that says what to do."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.metering import BOUNDS_SECONDS, METRICS, page

ROOT = Path(__file__).parents[3]
DASHBOARDS = sorted((ROOT / "k8s" / "monitoring" / "dashboards").glob("*.json"))
_HISTOGRAM_PARTS = ("_bucket", "_count", "_sum")


def exposed() -> set[str]:
    """Every name that Prometheus can be asked for."""
    histograms = [metric.exposed for metric in METRICS if metric.kind == "histogram"]
    others = [metric.exposed for metric in METRICS if metric.kind != "histogram"]
    return {f"{name}{part}" for name in histograms for part in _HISTOGRAM_PARTS} | set(others)


def labels() -> dict[str, set[str]]:
    found = {metric.exposed: set(metric.labels) for metric in METRICS}
    return found | {f"{name}{part}": of | {"le"} for name, of in found.items() for part in _HISTOGRAM_PARTS}


def unknown(expression: str) -> set[str]:
    """Names in an expression that no process tells, and labels that its metrics have not."""
    names = set(re.findall(r"palimpsest_\w+", expression))
    asked = {
        label
        for told in re.findall(r"by \(([^)]*)\)|\{([^}]*)\}", expression)
        for label in re.findall(r"(\w+)(?==|,|$| )", re.sub(r'"[^"]*"', "", " ".join(told)))
    }
    known = set().union(*(labels().get(name, set()) for name in names))
    return (names - exposed()) | {label for label in asked if label not in known}


def rules() -> list[dict[str, Any]]:
    documents = yaml.safe_load_all((ROOT / "k8s" / "base" / "monitoring.yaml").read_text("utf-8"))
    (found,) = (one for one in documents if one["kind"] == "PrometheusRule")
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_there_is_and_says_what_to_do(rule: dict[str, Any]) -> None:
    assert unknown(rule["expr"]) == set()
    runbook = ROOT / rule["annotations"]["runbook"]
    assert runbook.read_text("utf-8").startswith("# ")


def test_what_a_time_is_compared_to_parts_two_buckets() -> None:
    """Within a bucket Prometheus draws a line: what a call took is known only from bound to bound."""
    asked = [rule["expr"] for rule in rules() if rule["expr"].startswith("histogram_quantile")]
    assert asked
    assert {float(one.rpartition(">")[2]) for one in asked} <= set(BOUNDS_SECONDS)


def test_a_time_is_known_to_a_factor_of_six() -> None:
    assert max(after / before for before, after in pairwise(BOUNDS_SECONDS)) <= 6


def test_no_runbook_is_left_without_its_alert() -> None:
    told = {ROOT / rule["annotations"]["runbook"] for rule in rules()}
    assert set((ROOT / "docs" / "runbooks").glob("*.md")) == told


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_a_dashboard_asks_for_what_there_is(file: Path) -> None:
    panels = json.loads(file.read_text("utf-8"))["panels"]
    assert panels
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    assert set().union(*map(unknown, asked)) == set()


def test_every_metric_is_on_a_dashboard() -> None:
    told = "".join(file.read_text("utf-8") for file in DASHBOARDS)
    assert [metric.name for metric in METRICS if metric.exposed not in told] == []


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("sum(palimpsest_call_total)", {"palimpsest_call_total"}),
        ('sum(palimpsest_calls_total{tenant="a"})', {"tenant"}),
        ("sum by (graph) (palimpsest_calls_total)", {"graph"}),
        ("palimpsest_call_seconds", {"palimpsest_call_seconds"}),
    ],
)
def test_a_mistake_is_found(expression: str, wrong: set[str]) -> None:
    assert unknown(expression) == wrong


def test_the_page_of_metrics_is_current() -> None:
    current = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    assert current == page(), "python -c 'from services.metering import page; print(page(), end=\"\")'"
