"""Milvus Lite's server as a child: one for a data directory, on loopback, gone with its parent."""

import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from services.stores.vectors.lite import (
    DataDirInUse,
    LiteServer,
    LiteServerError,
    LiteServerFailed,
    PortInUse,
)
from tests.examples import sampled
from tests.machine import ROOT

pytestmark = pytest.mark.milvus

PARENT = """
import sys, time
from pathlib import Path
from services.stores.vectors.lite import LiteServer
server = LiteServer.start(Path(sys.argv[1]) / "data", Path(sys.argv[1]) / "log")
print(server.pid, flush=True)
time.sleep(600)
"""


def gone(pid: int, seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("end", sampled([signal.SIGKILL, signal.SIGTERM]))
def test_the_server_ends_when_its_parent_does(tmp_path: Path, end: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.send_signal(end)
    assert gone(pid)
    with LiteServer.start(tmp_path / "data", tmp_path / "log") as server:
        assert server.running


def test_only_loopback_is_listened_on(tmp_path: Path) -> None:
    with LiteServer.start(tmp_path / "data", tmp_path / "log") as server:
        listening = [
            connection.laddr
            for connection in psutil.Process(server.pid).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        # gRPC binds the address in its IPv6 form.
        addresses = {(address.ip.removeprefix("::ffff:"), address.port) for address in listening}
        assert addresses == {("127.0.0.1", server.port)}


def test_a_data_directory_has_one_server(tmp_path: Path) -> None:
    with LiteServer.start(tmp_path / "data", tmp_path / "log") as server:
        with pytest.raises(DataDirInUse):
            LiteServer.start(tmp_path / "data", tmp_path / "log", lock_seconds=0.1)
        assert server.running


@pytest.mark.slow
def test_of_two_started_at_once_one_is_refused(tmp_path: Path) -> None:
    servers: list[LiteServer] = []
    errors: list[LiteServerError] = []

    def start() -> None:
        try:
            servers.append(LiteServer.start(tmp_path / "data", tmp_path / "log", lock_seconds=0.1))
        except LiteServerError as error:
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert (len(servers), len(errors)) == (1, 1)
    finally:
        for server in servers:
            server.stop()


@pytest.mark.slow
def test_a_start_waits_for_a_former_owner_to_let_go(tmp_path: Path) -> None:
    first = LiteServer.start(tmp_path / "data", tmp_path / "log")
    ending = threading.Timer(0.3, first.stop)
    ending.start()
    try:
        with LiteServer.start(tmp_path / "data", tmp_path / "log", lock_seconds=30) as second:
            assert second.running
            assert not first.running
    finally:
        ending.join()


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(PortInUse):
        LiteServer.start(tmp_path / "data", tmp_path / "log", port=other.getsockname()[1])
    with LiteServer.start(tmp_path / "one", tmp_path / "log") as server, pytest.raises(PortInUse):
        LiteServer.start(tmp_path / "two", tmp_path / "log", port=server.port)


def test_a_server_that_ends_at_once_names_its_log(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "collections").write_text("not a folder")
    with pytest.raises(LiteServerFailed, match="log"):
        LiteServer.start(tmp_path / "data", tmp_path / "log")
    assert "FileExistsError" in (tmp_path / "log").read_text()


def test_a_server_that_is_too_slow_is_ended(tmp_path: Path) -> None:
    with pytest.raises(LiteServerFailed, match="did not listen"):
        LiteServer.start(tmp_path / "data", tmp_path / "log", ready_seconds=0)
    with LiteServer.start(tmp_path / "data", tmp_path / "log", lock_seconds=0.1) as server:
        assert server.running


@pytest.mark.slow
def test_stopping_twice_is_the_same(tmp_path: Path) -> None:
    server = LiteServer.start(tmp_path / "data", tmp_path / "log")
    server.stop()
    server.stop()
    server.kill()
    assert not server.running
