"""The product as a user runs it: `palimpsest up` as a child process, on data of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import psutil

from palimpsest import local
from palimpsest.connection import new_request_id
from palimpsest.v1 import admin_pb2, admin_pb2_grpc

READY_SECONDS = {"inprocess": 90.0, "ray": 240.0}
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.1
_CREDIT = 1_000_000
SPANS = "spans.jsonl"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant with a key that may do everything a tenant may."""

    id: str
    key: str

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What authenticates a call."""
        return (("authorization", f"Bearer {self.key}"),)


def program(name: str) -> str:
    """A command that setup has installed beside this Python."""
    return str(Path(sys.executable).with_name(name))


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without settings of the product, plus `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALIMPSEST_")}
    return kept | {"COLUMNS": "200", "NO_COLOR": "1"} | dict(extra or {})


def telling(folder: Path) -> dict[str, str]:
    """Settings by which a product writes its spans into `folder` and shows its metrics."""
    return {
        "PALIMPSEST_TELEMETRY__TRACES": "file",
        "PALIMPSEST_TELEMETRY__TRACE_FILE": str(folder / SPANS),
        "PALIMPSEST_TELEMETRY__METRICS_PORT": "0",
    }


class UpProcess:
    """A child process that runs everything, and what it takes to talk to it.

    `settings` are environment variables, such as PALIMPSEST_ENGINE. Started by `start`; a second `start`
    after `kill` or `stop` runs on the same data. `port` 0 takes a free one. `options` are of `palimpsest up`.
    """

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, str] | None = None,
        port: int = 0,
        runtime: str = "inprocess",
        options: Sequence[str] = (),
    ) -> None:
        self._runtime = runtime
        self._options = options
        self.data_dir = data_dir
        self._settings = dict(settings or {})
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._operator_key = ""
        self._tenants = 0

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    @property
    def environment(self) -> dict[str, str]:
        """In which its commands run."""
        return clean_environment(self._settings)

    @property
    def target(self) -> str:
        """Where the gateway listens."""
        found = local.announced(self.data_dir)
        assert found is not None, "not up"
        return found

    @property
    def services_target(self) -> str:
        """Where the services listen, as it has said."""
        found: list[str] = re.findall(r"^services +(\S+) ", self.output, re.MULTILINE)
        return found[-1]

    def family(self) -> list[psutil.Process]:
        """Its process and all that descend from it."""
        process = psutil.Process(self.process.pid)
        return [process, *process.children(recursive=True)]

    def logged(self, service: str = "palimpsest") -> list[dict[str, Any]]:
        """The lines of the gateway's log, or of a service's on Ray."""
        file = self.data_dir / "logs" / f"{service}.log"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def spans(self, trace: str) -> list[dict[str, Any]]:
        """The spans of a trace that `telling` has it write, in the order of their ends."""
        lines = (self.data_dir.parent / SPANS).read_text(encoding="utf-8").splitlines()
        return [span for span in map(json.loads, lines) if span["context"]["trace_id"] == f"0x{trace}"]

    @property
    def output(self) -> str:
        """What it has printed, of all its starts."""
        return self._output.read_text(encoding="utf-8") if self._output.exists() else ""

    @property
    def _output(self) -> Path:
        return self.data_dir.parent / f"{self.data_dir.name}.output"

    def start(self) -> Self:
        """Starts it and waits until it serves. Fails with what it printed when it ends instead."""
        (self.data_dir / local.FILE).unlink(missing_ok=True)  # left by a kill
        command = [program("palimpsest"), "up", "--data-dir", str(self.data_dir)]
        command += ["--port", str(self._port), "--runtime", self._runtime, *self._options]
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        deadline = time.monotonic() + READY_SECONDS[self._runtime]
        while local.announced(self.data_dir) is None:
            ended = self._process.poll()
            if ended is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"palimpsest up ended with {ended} or is not ready:\n{self.output}")
            time.sleep(_POLL_SECONDS)
        return self

    def stop(self, with_signal: signal.Signals = signal.SIGINT) -> int:
        """Stops it as a user does; returns the exit code. Fails when it leaves a child process."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(with_signal)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"palimpsest up did not stop:\n{self.output}") from None
        _, alive = psutil.wait_procs(family, timeout=5)
        assert not alive, f"left running: {alive}"
        return code

    def end(self, with_signal: signal.Signals) -> None:
        """Stops it by a signal, and fails where anything of it is left."""
        host, _, port = self.target.partition(":")
        assert self.stop(with_signal) == 0
        with socket.socket() as probe:
            assert probe.connect_ex((host, int(port))) != 0
        assert local.announced(self.data_dir) is None
        assert "stopped." in self.output

    def kill(self) -> None:
        """Ends it at once, as a crash does, and waits until its children have noticed."""
        try:
            family = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        self.process.kill()
        self.process.wait()
        _, alive = psutil.wait_procs(family, timeout=STOP_SECONDS)
        assert not alive, f"outlived their parent: {alive}"

    @property
    def operator_key(self) -> str:
        """The operator's key; made at first use, by `palimpsest-admin init`."""
        if not self._operator_key:
            command = [program("palimpsest-admin"), "init", "--data-dir", str(self.data_dir)]
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            self._operator_key = done.stdout.strip()
        return self._operator_key

    @operator_key.setter
    def operator_key(self, key: str) -> None:
        """Somebody else made it, as the first thing that was done here."""
        assert key
        assert not self._operator_key, "it is made once"
        self._operator_key = key

    def tenant(self, credits_micros: int = 100 * _CREDIT, name: str = "") -> Tenant:
        """A fresh tenant with an ERASE key (which holds WRITE and READ) and credits."""
        self._tenants += 1
        tenant = name or f"tenant-{self._tenants}"
        operator = (("authorization", f"Bearer {self.operator_key}"),)
        with grpc.insecure_channel(self.target) as channel:
            admin = admin_pb2_grpc.AdminServiceStub(channel)
            admin.CreateTenant(admin_pb2.CreateTenantRequest(tenant_id=tenant), metadata=operator)
            request = admin_pb2.CreateApiKeyRequest(tenant_id=tenant, scopes=[admin_pb2.API_KEY_SCOPE_ERASE])
            key = admin.CreateApiKey(request, metadata=operator).secret
            if credits_micros:
                grant = admin_pb2.GrantCreditsRequest(
                    tenant_id=tenant, amount_micros=credits_micros, request_id=new_request_id()
                )
                admin.GrantCredits(grant, metadata=operator)
        return Tenant(tenant, key)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()
