"""Milvus Lite's server as a child process: one for a data directory, on loopback, gone with its parent.

Run as a module it is that child: it prepares itself and then becomes `milvus-lite server`.

LiteServerError
├── DataDirInUse        another process holds the data directory
├── PortInUse           the port that was asked for is taken
└── LiteServerFailed    the server ended, or did not answer in time; its log says why
"""

import contextlib
import fcntl
import gc
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

HOST = "127.0.0.1"

MODULE = "services.stores.vectors.lite"

WORKERS = 1
"""The server's threads. Its collections take one writer at a time and hide rows for as long as they flush
them, so with two threads concurrent writes lose rows and searches miss some. One thread makes every call
whole, and costs little: Python's lock lets only one run anyway."""

_YOUNG = 20_000
"""Objects that come before Python looks for garbage: after 700, its own, that is a sixth of the start."""

_POLL_SECONDS = 0.05


class LiteServerError(Exception):
    """Milvus Lite could not be started."""


class DataDirInUse(LiteServerError):
    """Another process holds the data directory."""


class PortInUse(LiteServerError):
    """The port that was asked for is taken."""


class LiteServerFailed(LiteServerError):
    """The server ended, or did not answer in time."""


class LiteServer:
    """A running server. `start` and `stop` block: from async code call them in a thread."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.port = port

    @classmethod
    def start(
        cls,
        data_dir: Path,
        log: Path,
        port: int = 0,
        ready_seconds: float = 60.0,
        lock_seconds: float = 10.0,
    ) -> "LiteServer":
        """Starts the server and waits until it listens. `port` 0 takes a free one.

        `lock_seconds` is how long to wait for a former owner of `data_dir` to let go: a server whose parent
        was killed writes its rows before it ends. Raises LiteServerError.
        """
        data_dir.mkdir(parents=True, exist_ok=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        _wait_until_free(data_dir, lock_seconds)
        # Held, unheard, while the child binds it too (gRPC sets SO_REUSEPORT): nobody else gets the port.
        with _reserve(port) as reserved:
            server = cls(_spawn(data_dir, log, reserved.getsockname()[1]), reserved.getsockname()[1])
            try:
                server._wait_until_ready(log, ready_seconds)
            except BaseException:
                server.stop(grace_seconds=0)
                raise
        return server

    @property
    def uri(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self, grace_seconds: float = 20.0) -> None:
        """Asks the server to write its rows and end, and ends it after `grace_seconds`. Idempotent."""
        if self.running and grace_seconds > 0:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_seconds)
        self.kill()

    def kill(self) -> None:
        """Ends the server at once, as a crash would. Idempotent."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def __enter__(self) -> "LiteServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_until_ready(self, log: Path, seconds: float) -> None:
        def listens() -> bool:
            if not self.running:
                raise LiteServerFailed(f"Milvus Lite ended with {self._process.returncode}; see {log}")
            with socket.socket() as probe:
                probe.settimeout(1)
                return probe.connect_ex((HOST, self.port)) == 0

        if not _within(seconds, listens):
            raise LiteServerFailed(f"Milvus Lite did not listen within {seconds:g} s; see {log}")


def _spawn(data_dir: Path, log: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-u", "-m", MODULE, "--data-dir", str(data_dir.resolve())]
    command += ["--host", HOST, "--port", str(port), "--max-workers", str(WORKERS)]
    with log.open("ab") as output:
        # stdin is the child's sign of life of its parent. A session of its own keeps the terminal's Ctrl-C
        # from it: the parent stops it last.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )


def _reserve(port: int) -> socket.socket:
    """A bound socket that does not listen. Raises PortInUse."""
    if port:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise PortInUse(f"port {port} is taken") from error
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        reserved.bind((HOST, port))
    except OSError as error:
        reserved.close()
        raise PortInUse(f"port {port} is taken") from error
    return reserved


def _wait_until_free(data_dir: Path, seconds: float) -> None:
    """Waits for the lock that Milvus Lite itself takes, so that the refusal is ours and clear."""

    def free() -> bool:
        with (data_dir / "LOCK").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    if not _within(seconds, free):
        raise DataDirInUse(f"another process holds {data_dir}")


def _within(seconds: float, done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def main(arguments: Sequence[str]) -> None:
    """The child: ends cleanly on SIGTERM and when its parent goes, and serves until then."""
    gc.set_threshold(_YOUNG)
    # The server writes its rows and closes its files on KeyboardInterrupt only.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_follow_parent, daemon=True).start()
    sys.argv = ["milvus-lite", "server", *arguments]
    runpy.run_module("milvus_lite", run_name="__main__", alter_sys=True)


def _follow_parent() -> None:
    # Ends when the last write end of the pipe closes: the parent let go, or died in whatever way.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1:])
