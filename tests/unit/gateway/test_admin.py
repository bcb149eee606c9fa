"""`palimpsest-admin`: the operator's key once, the audit with an exit code."""

import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.admin import app
from gateway.credits.audit import CHECKS


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PALIMPSEST_DATA_DIR", "PALIMPSEST_LEDGER_URL", "PALIMPSEST_JOBS_URL"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, prog_name="palimpsest-admin")


def test_the_operators_key_is_made_and_shown_once(tmp_path: Path) -> None:
    first = run("init", "--data-dir", str(tmp_path))
    assert first.exit_code == 0
    key = first.stdout.strip()
    assert key.startswith("pk_live_")
    assert len(first.stdout.splitlines()) == 1  # alone, so that a script can take it
    again = run("init", "--data-dir", str(tmp_path))
    assert (again.exit_code, again.stdout) == (1, "")
    assert "there already" in again.stderr
    secret = key.rpartition("_")[2]
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_an_audit_of_sound_books_finds_nothing(tmp_path: Path) -> None:
    done = run("audit", "--data-dir", str(tmp_path))
    assert done.exit_code == 0
    assert f"all {len(CHECKS)} invariants" in done.stdout


def test_an_audit_names_what_is_broken(tmp_path: Path) -> None:
    run("audit", "--data-dir", str(tmp_path))
    with sqlite3.connect(tmp_path / "ledger.db") as books:
        books.execute("insert into accounts (tenant, account, balance) values ('acme', 'available', 5)")
    books.close()
    done = run("audit", "--data-dir", str(tmp_path))
    assert done.exit_code == 1
    assert "projection_equals_journal  acme available" in done.stdout
    assert "findings" in done.stderr
    told = [
        json.loads(line) for line in run("audit", "--json", "--data-dir", str(tmp_path)).stdout.splitlines()
    ]
    assert {"invariant": "projection_equals_journal", "subject": "acme available"} in told


def test_settings_that_cannot_be_used_are_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_GATEWAY_PORT", "x")
    for arguments in (["init", "--data-dir", str(tmp_path)], ["settings"]):
        done = run(*arguments)
        assert done.exit_code == 1
        assert done.stderr.startswith("palimpsest-admin: PALIMPSEST_GATEWAY_PORT: ")


def test_settings_are_lines_that_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_ASSERTION_SECRET", "hunter2-hunter2-hunter2")
    done = run("settings")
    assert "PALIMPSEST_GATEWAY_HOST=127.0.0.1" in done.stdout.splitlines()
    assert "hunter2" not in done.stdout
    as_json = json.loads(run("settings", "--json").stdout)
    assert [f"{name}={value}" for name, value in as_json.items()] == done.stdout.splitlines()


def test_a_wrong_command_line_is_a_line() -> None:
    done = run("verify", "--nonsense")
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("palimpsest-admin: No such option: --nonsense")
