"""The real Milvus server (2.3.5, standalone) as a child process, on loopback alone, gone with its parent.

Run as a module it prints the server's URI once that answers, and serves until it is terminated or its
standard input closes: `python -m tests.doubles.milvus_server --data-dir DIR`.

The server listens everywhere on eleven ports and can't be told otherwise, so it runs in a network of its own
(tests/doubles/milvus_inside.py) and is reached through one port of 127.0.0.1.
"""

import contextlib
import fcntl
import lzma
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Annotated

import typer

HOST = "127.0.0.1"

_PINNED = Path(__file__).with_suffix(".txt")
_INSIDE = "tests.doubles.milvus_inside"
_ROOT = Path(__file__).resolve().parent.parent.parent
_VARIABLE = re.compile(r"\{\{ *(\w+)(?:\(\w+\))? *(?:: *([^ }]*))? *\}\}")

_CHANGED = {
    "\n  level: info #": "\n  level: warn #",
    # Reads of one's own writes wait for a tick: tests do little else.
    "\n  timeTickInterval: 200 #": "\n  timeTickInterval: 50 #",
}


_NONE: Mapping[str, str] = MappingProxyType({})


class MilvusServerFailed(Exception):
    """The server can't be installed or started here; the text says why."""


def why_not() -> str | None:
    """Why the server can't run on this machine; None if it can. Starts a process, which takes 50 ms."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "the packaged Milvus server is for Linux on x86-64"
    tried = subprocess.run(
        [sys.executable, "-m", _INSIDE, "--try"], cwd=_ROOT, stdin=subprocess.DEVNULL, capture_output=True
    )
    return None if tried.returncode == 0 else "this machine allows no network namespaces to this user"


def programs() -> Path:
    """The folder with the server's programs and its configuration's template; installed once a user.

    Raises MilvusServerFailed.
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "palimpsest"
    made = caches / "milvus-server-2.3.5"
    if made.is_dir():
        return made
    caches.mkdir(parents=True, exist_ok=True)
    with _lock(caches / "milvus-server.lock"):
        if not made.is_dir():
            unfinished = Path(tempfile.mkdtemp(dir=caches, prefix="unfinished-"))
            try:
                _install(unfinished)
                unfinished.rename(made)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return made


def _install(folder: Path) -> None:
    wheel = folder / "package"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--require-hashes", "--target", str(wheel), "-r", str(_PINNED)]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise MilvusServerFailed(f"the Milvus server's package can't be installed:\n{done.stderr}")
    data = wheel / "milvus" / "data"
    for packed in (data / "bin").glob("*.lzma"):
        program = folder / packed.stem
        with lzma.open(packed) as source, program.open("wb") as target:
            shutil.copyfileobj(source, target)
        program.chmod(0o755)
    for name in ("config.yaml.template", "glog.conf"):
        shutil.copy(data / name, folder / name)
    shutil.rmtree(wheel)


@contextlib.contextmanager
def _lock(file: Path) -> Iterator[None]:
    with file.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


class MilvusServer:
    """A running server. `start`, `stop` and `kill` block."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self.port = port

    @classmethod
    def start(cls, folder: Path, port: int = 0, variables: Mapping[str, str] = _NONE) -> "MilvusServer":
        """Starts a server on the data in `folder` and waits until it answers, 2 to 10 s.

        `port` 0 takes a free one. `variables` are of the package's template of its configuration. Raises
        MilvusServerFailed.
        """
        folder = folder.resolve()
        _configure(programs(), folder, variables)
        with socket.create_server((HOST, port)) as listening:
            port = listening.getsockname()[1]
            descriptor = listening.fileno()
            process = subprocess.Popen(
                [sys.executable, "-m", _INSIDE, str(descriptor), str(programs()), str(folder)],
                cwd=_ROOT,
                pass_fds=[descriptor],
                stdin=subprocess.PIPE,  # closes when this process ends, in whatever way
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        server = cls(process, port)
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            server.kill()
            raise MilvusServerFailed(f"Milvus did not start:\n{_end_of(folder / 'milvus.log')}")
        return server

    @property
    def uri(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process that guards the server; the server is its child."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Asks the server to end, and ends it after a while. Idempotent."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the server at once, as a crash would. Idempotent."""
        self._end(signal.SIGUSR1)

    def _end(self, how: signal.Signals) -> None:
        if self.running:
            self._process.send_signal(how)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> "MilvusServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _configure(programs: Path, folder: Path, variables: Mapping[str, str]) -> None:
    """Writes the server's configuration: the package's own, with every path in `folder`."""
    given = {
        "etcd_log_path": folder / "etcd.log",
        "etcd_data_dir": folder / "data" / "etcd",
        "local_storage_dir": folder / "data",
        "rocksmq_data_dir": folder / "data" / "rocksmq",
        "system_log_path": "",
        **variables,
    }

    def value(variable: re.Match[str]) -> str:
        return str(given.get(variable[1], variable[2] or ""))

    (folder / "configs").mkdir(parents=True, exist_ok=True)
    template = (programs / "config.yaml.template").read_text()
    settings = _VARIABLE.sub(value, template)
    for usual, ours in _CHANGED.items():
        assert usual in settings, f"the template has no {usual}"
        settings = settings.replace(usual, ours)
    (folder / "configs" / "milvus.yaml").write_text(settings)
    shutil.copy(programs / "glog.conf", folder / "configs" / "glog.conf")


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log.exists() else ""


def main(
    data_dir: Annotated[Path, typer.Option(help="Folder of the server's data and logs.")],
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
) -> None:
    """Runs the server until SIGTERM, SIGINT or the end of standard input."""
    with MilvusServer.start(data_dir, port) as server:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.default_int_handler)
        print(server.uri, flush=True)  # noqa: T201 - the caller reads it
        with contextlib.suppress(KeyboardInterrupt):
            while os.read(0, 1):
                pass


if __name__ == "__main__":
    typer.run(main)
