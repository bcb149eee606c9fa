"""`palimpsest up` that can't start says why, in one line, before it opens anything."""

import socket
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gateway.server import PortTaken, check_port
from gateway.settings import GatewaySettings
from gateway.up import command


@pytest.fixture
def up() -> typer.Typer:
    app = typer.Typer()
    app.command()(command)
    return app


def test_a_taken_port_is_told_with_the_way_out(up: typer.Typer, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = CliRunner().invoke(up, ["--data-dir", str(folder), "--port", str(port)])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"can't start: can't listen on 127.0.0.1:{port}: the port is taken")
    assert "--port 0 takes a free one" in line
    assert not folder.exists()


def test_a_port_that_was_just_left_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings = GatewaySettings(gateway_port=other.getsockname()[1])
        with pytest.raises(PortTaken):
            check_port(settings)
    check_port(settings)


def test_an_address_that_is_not_ours_is_told_with_its_reason() -> None:
    with pytest.raises(OSError, match=r"can't listen on 192\.0\.2\.1:0: "):
        check_port(GatewaySettings(gateway_host="192.0.2.1", gateway_port=0))
