"""A PostgreSQL server of the tests' own: real, on loopback, in a folder that is removed when it stops."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg

from services.runtime.ports import free_port

START_TIMEOUT_SECONDS = 60
_IN_MEMORY = Path("/dev/shm")  # a name that mkdtemp makes there is nobody else's
_ROOM_BYTES = 4 << 30
SERVER_ROLE = "palimpsest_server"
"""Whom stores connect as: it owns nothing and bypasses nothing. Made with the first migrated database."""
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    # A test's data outlives no crash of its server.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "64MB",
}


def as_server(url: str) -> str:
    """The URL of a database by SERVER_ROLE."""
    return url.replace("//palimpsest@", f"//{SERVER_ROLE}@")


class PostgresServer:
    """One server process; many short-lived databases. `programs` holds `initdb` and `postgres`.

    `changed` are settings of its own over those of tests.
    """

    def __init__(self, programs: Path, changed: Mapping[str, str] | None = None) -> None:
        self._programs = programs
        self._settings = {**_SETTINGS, **(changed or {})}
        place = _memory() if self._settings["fsync"] == "off" else None
        self._folder = Path(tempfile.mkdtemp(prefix="palimpsest-postgres-", dir=place))
        self._account = _account()
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        self.port = 0

    def start(self) -> None:
        """Makes the cluster and waits until the server answers. Raises RuntimeError with the server's log."""
        if self._account:
            os.chown(self._folder, self._account["user"], self._account["group"])
        self._run_initdb()
        self.port = free_port()
        self.resume()

    def resume(self) -> None:
        """Starts the server again on its data and port after `halt`, and waits until it answers."""
        with (self._folder / "log").open("ab") as log:
            settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-p", str(self.port), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                **self._account,
            )
        self._wait()

    def halt(self) -> None:
        """Ends the server, its sessions too; its data stay."""
        if self._process:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(timeout=30)
            self._process = None

    def stop(self) -> None:
        """Ends the server, its sessions too, and removes its folder."""
        self.halt()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """Of the server's first process."""
        assert self._process is not None
        return self._process.pid

    def url(self, database: str) -> str:
        return f"postgresql://palimpsest@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """The URL of a fresh database, dropped at the end with whoever is still connected to it."""
        self._made += 1
        name = f"test_{self._made}"
        with self._administer() as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        try:
            yield self.url(name)
        finally:
            with self._administer() as connection:
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _administer(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10)

    def _run_initdb(self) -> None:
        options = ["--username=palimpsest", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(
            [self._programs / "initdb", "-D", self._data, *options],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            **self._account,
        )
        if done.returncode:
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            assert self._process is not None
            try:
                self._administer().close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = (self._folder / "log").read_text(errors="replace")
                    self.stop()
                    raise RuntimeError(f"PostgreSQL did not start:\n{log}") from error
                time.sleep(0.05)
            else:
                return


def _memory() -> Path | None:
    """Where files lie in memory: what needs not last is made there for a third of the work."""
    with contextlib.suppress(OSError):
        if os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM_BYTES:
            return _IN_MEMORY
    return None


def _account() -> dict[str, Any]:
    """Whom to run as: PostgreSQL refuses root. Empty where the tests run as somebody else already."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise RuntimeError("running as root, and no account `postgres` or `nobody` to run PostgreSQL as")
