"""What a product tells of itself: one trace a document, numbers without names, nothing that anybody said."""

import asyncio
import json
import re
import secrets
import subprocess
import urllib.request

import pytest

from services.metering import BOUNDS_SECONDS, METRICS
from services.runtime.names import ServiceName
from tests.e2e.traced import CANARY, hops, orphans, remember
from tests.e2e.up_process import UpProcess, program

pytestmark = pytest.mark.milvus


async def test_one_document_is_one_trace_from_the_caller_to_the_stores(running: UpProcess) -> None:
    memory, spans = await remember(running, "traced", secrets.token_hex(16))
    assert hops(spans) >= {
        "/palimpsest.v1.MemoryService/AddEpisode",
        "/palimpsest.v1.RecallService/Recall",
        "job ingest",
        *(f"call {service}" for service in ServiceName),
        "preprocessor Preprocess",
        "resolver Resolve",
        "recall Recall",
        "write ledger",
        "write jobs",
        "write memory",
        "write graph",
        "call vectors",
    }
    assert orphans(spans) == []
    told = str(spans)
    assert CANARY not in told
    assert CANARY.casefold() not in told.casefold()
    assert memory.tenant.name not in told
    logs = "".join(file.read_text("utf-8") for file in (running.data_dir / "logs").glob("*.log"))
    assert '"method": "/palimpsest.v1.MemoryService/AddEpisode"' in logs
    assert CANARY.casefold() not in logs.casefold()


def metrics_of(up: UpProcess) -> str:
    """The page that Prometheus reads."""
    (page,) = re.findall(r"^metrics +(\S+)", up.output, re.MULTILINE)
    with urllib.request.urlopen(page, timeout=30) as answer:
        return str(answer.read().decode())


async def test_numbers_have_no_names_in_them(running: UpProcess) -> None:
    memory, _ = await remember(running, "counted", secrets.token_hex(16))
    told = await asyncio.to_thread(metrics_of, running)
    names = {line.split()[2] for line in told.splitlines() if line.startswith("# TYPE palimpsest_")}
    assert names >= {
        "palimpsest_calls_total",
        "palimpsest_call_seconds",
        "palimpsest_calls_in_flight",
        "palimpsest_service_seconds",
        "palimpsest_store_seconds",
        "palimpsest_reading_seconds",
        "palimpsest_job_seconds",
        "palimpsest_jobs_unfinished",
        "palimpsest_holds_open",
    }
    assert names <= {metric.exposed for metric in METRICS}
    for time in (name for name in names if name.endswith("_seconds") and f"{name}_bucket" in told):
        bounds = {float(le) for le in re.findall(rf'^{time}_bucket{{.*le="([0-9.]+)"', told, re.MULTILINE)}
        assert bounds == set(BOUNDS_SECONDS), time
    assert CANARY.casefold() not in told.casefold()
    assert memory.tenant.name not in told
    assert "counted" not in told


def test_status_tells_whether_all_is_well(running: UpProcess) -> None:
    asked = [program("palimpsest"), "status", "--target", running.target]
    shown, listed = (
        subprocess.run(command, env=running.environment, capture_output=True, text=True, check=True).stdout
        for command in (asked, [*asked, "--json"])
    )
    assert "SERVING" in shown
    assert "NOT_SERVING" not in shown
    told = json.loads(listed)
    assert set(told.values()) == {"SERVING"}
    assert {"palimpsest", "palimpsest.ledger", "palimpsest.recall"} <= set(told)
