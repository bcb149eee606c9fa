"""Where the command line finds the server and the key; what it loads for that."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer

from palimpsest import local
from palimpsest.cli.exits import Exit
from palimpsest.cli.plugins import GROUP, load
from palimpsest.v1 import admin_pb2, credits_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted

SERVER_SIDE = {"gateway", "services", "sqlalchemy", "pydantic", "numpy", "spacy", "pymilvus", "dbos", "ray"}


def test_a_gateway_on_this_machine_is_found_by_its_file(tmp_path: Path, server: Scripted, run: Run) -> None:
    server.answers("GetBalance", credits_pb2.GetBalanceResponse())
    (tmp_path / local.DATA_DIR).mkdir()
    local.announce(tmp_path / local.DATA_DIR, server.target)
    assert run("balance", PALIMPSEST_TARGET="").exit_code == 0


def test_what_is_given_goes_before_the_file_and_the_file_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PALIMPSEST_DATA_DIR", str(tmp_path))
    assert local.find("") == (local.DEFAULT_TARGET, "the default")
    local.announce(tmp_path, "127.0.0.1:5")
    assert local.find("") == ("127.0.0.1:5", str(tmp_path / local.FILE))
    assert local.find("there:1")[0] == "there:1"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"target": 5}', "\xff"])
def test_a_damaged_file_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / local.FILE).write_bytes(content.encode("latin-1"))
    assert local.announced(tmp_path) is None


def test_a_gateway_withdraws_only_what_is_its_own(tmp_path: Path) -> None:
    local.announce(tmp_path, "a:1")
    local.announce(tmp_path, "b:2")
    local.withdraw(tmp_path, "a:1")
    assert local.announced(tmp_path) == "b:2"
    local.withdraw(tmp_path, "b:2")
    local.withdraw(tmp_path, "b:2")
    assert local.announced(tmp_path) is None


def test_an_option_goes_before_the_environment(server: Scripted, run: Run) -> None:
    server.answers("GetBalance", credits_pb2.GetBalanceResponse())
    run("balance")
    run("balance", "--key", "pk_other")
    run("balance", PALIMPSEST_KEY="")
    assert server.keys == ["pk_test", "pk_other", ""]


def test_operators_commands_take_the_operators_key(server: Scripted, run: Run) -> None:
    server.answers("CreateTenant", admin_pb2.CreateTenantResponse())
    server.answers("GetBalance", credits_pb2.GetBalanceResponse())
    both = {"PALIMPSEST_OPERATOR_KEY": "pk_operator", "PALIMPSEST_KEY": "pk_tenant"}
    run("tenant", "create", "acme", **both)
    run("balance", **both)
    run("tenant", "create", "acme")
    assert server.keys == ["pk_operator", "pk_tenant", "pk_test"]


def test_the_command_line_loads_nothing_of_the_server() -> None:
    code = "import sys, palimpsest.cli.app; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not SERVER_SIDE & set(loaded.stdout.split())


def test_up_is_listed_without_loading_it(run: Run) -> None:
    assert "Starts stores, services and gateway" in " ".join(run("--help").stdout.split())


def test_without_the_server_extra_the_command_says_what_to_install(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = EntryPoint("up", "a_package_that_is_nowhere.up:command", GROUP)
    with pytest.raises(typer.Exit) as ended:
        load("up", [missing])
    assert ended.value.exit_code == Exit.USAGE
    line = capsys.readouterr().err
    assert "needs a_package_that_is_nowhere" in line
    assert "pip install 'palimpsest-memory[server]'" in line


def test_a_command_that_nobody_brings_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        load("up", [])
    assert "not installed" in capsys.readouterr().err


def test_a_part_may_bring_an_app_or_a_function() -> None:
    app = EntryPoint("cli", "palimpsest.cli.app:app", GROUP).load()
    assert load("cli", [EntryPoint("cli", "palimpsest.cli.app:app", GROUP)]) is app
    function = load("f", [EntryPoint("f", "palimpsest.connection:new_request_id", GROUP)])
    assert isinstance(function, typer.Typer)
