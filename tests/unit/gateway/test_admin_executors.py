"""`palimpsest-admin executors` and `recover`: who runs jobs, and what one left that is gone."""

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.admin import app
from gateway.ingest.durable import DurableEngine, DurableSettings, Run
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from gateway.store.backlog import SILENT_SECONDS

MICROS = 1_000_000


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA_DIR", "LEDGER_URL", "JOBS_URL", "WORKFLOWS_URL"):
        monkeypatch.delenv(f"PALIMPSEST_{name}", raising=False)


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--data-dir", str(folder)])


async def seen(folder: Path, *ids: str) -> None:
    """Processes under these ids were heard of just now."""
    stores = await open_gateway_stores(GatewaySettings(data_dir=folder))
    for id in ids:
        await stores.executors.start(id, f"instance of {id}")
    await stores.executors.stop("ended", "instance of ended")
    await stores.close()


def silence(folder: Path, id: str) -> None:
    """Nothing was heard of it for as long as makes it missing."""
    since = round((SILENT_SECONDS + 1) * MICROS)
    with sqlite3.connect(folder / "ledger.db") as ledger:
        ledger.execute("update executors set seen_at = seen_at - ? where id = ?", (since, id))
    ledger.close()


def test_processes_are_listed_and_a_silent_one_is_told_by_the_exit_code(tmp_path: Path) -> None:
    nobody = run(tmp_path, "executors")
    assert (nobody.exit_code, nobody.stdout) == (0, "")
    asyncio.run(seen(tmp_path, "here", "ended", "gone"))
    assert run(tmp_path, "executors").exit_code == 0
    silence(tmp_path, "gone")
    told = run(tmp_path, "executors")
    assert told.exit_code == 1
    assert [line.split()[:2] for line in told.stdout.splitlines()] == [
        ["ended", "ended"],
        ["gone", "silent"],
        ["here", "alive"],
    ]
    lines = [json.loads(line) for line in run(tmp_path, "executors", "--json").stdout.splitlines()]
    assert [(one["id"], one["state"]) for one in lines][1] == ("gone", "silent")
    assert lines[1]["silent_seconds"] > SILENT_SECONDS


async def test_what_a_process_left_is_given_to_others_once(tmp_path: Path) -> None:
    engine = DurableEngine(
        DurableSettings(f"sqlite:///{tmp_path / 'workflows.db'}", "worker-0", drain_seconds=0)
    )
    begun = asyncio.Event()

    async def forever(_run: Run, _argument: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    engine.register("ingest", forever)
    await engine.launch()
    await engine.start("ingest", "job-1:2", "job-1:2", 1)
    await begun.wait()
    await engine.close()
    await seen(tmp_path, "worker-0", "ended")

    refused = await asyncio.to_thread(run, tmp_path, "recover", "--executor", "worker-0")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "lives" in refused.stderr
    forced = await asyncio.to_thread(run, tmp_path, "recover", "--executor", "worker-0", "--force")
    assert (forced.exit_code, forced.stdout) == (0, "job-1\n")
    assert "1 jobs of worker-0" in forced.stderr
    silence(tmp_path, "worker-0")
    again = await asyncio.to_thread(run, tmp_path, "recover", "--executor", "worker-0")
    assert (again.exit_code, again.stdout) == (0, "")
    assert "0 jobs" in again.stderr


def test_a_place_that_can_not_be_used_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_GATEWAY_PORT", "x")
    for command in (["executors"], ["recover", "--executor", "gone"]):
        done = run(tmp_path, *command)
        assert done.exit_code == 2
        assert done.stderr.startswith("palimpsest-admin: PALIMPSEST_GATEWAY_PORT: ")
