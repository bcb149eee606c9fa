"""The product as a child process: started on data of its own, waited for, stopped; nothing of it stays."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.services import ServiceName
from palimpsest import local

READY_SECONDS = 300.0
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.2


class NotUp(Exception):
    """The product did not start; the text is what it printed."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running product."""

    process: subprocess.Popen[bytes]
    folder: Path
    target: str
    settings: Mapping[str, str]

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    def processes(self, job_id: str) -> Mapping[str, set[int]]:
        """The processes of each service that worked on a job, by their logs."""
        return {name: set(_pids(self.data_dir / "logs" / f"{name}.log", job_id)) for name in ServiceName}


def _pids(log: Path, job_id: str) -> Iterator[int]:
    for line in log.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        if told.get("trace") == job_id:
            yield told["pid"]


def program(name: str) -> str:
    """A command that was installed beside this Python. Raises NotUp."""
    found = Path(sys.executable).with_name(name)
    if not found.exists():
        raise NotUp(f"{name} is not installed beside {sys.executable}: run `make setup`")
    return str(found)


@asynccontextmanager
async def product(keep: bool, settings: Mapping[str, str]) -> AsyncIterator[Child]:
    """`palimpsest up` on a free port and a folder of its own, healthy; stopped and removed at the end.

    `settings` are environment variables. With `keep` it goes on when the story ends well. Raises NotUp.
    """
    folder = Path(tempfile.mkdtemp(prefix="palimpsest-demo-"))
    process: subprocess.Popen[bytes] | None = None
    kept = False
    try:
        process = _start(folder, settings)
        child = Child(process, folder, await _target(process, folder), settings)
        await _healthy(child.target)
        yield child
        kept = keep
    finally:
        if not kept:
            if process is not None:
                stop(process)
            shutil.rmtree(folder)


def _start(folder: Path, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C reaches the demo alone, which then stops the product.
    with (folder / "up.output").open("wb") as output:
        return subprocess.Popen(
            [program("palimpsest"), "up", "--port", "0", "--data-dir", str(folder / "data")],
            env=environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """These settings and none of another installation: what runs is otherwise the default."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PALIMPSEST_")}
    return others | dict(settings)


async def _target(process: subprocess.Popen[bytes], folder: Path) -> str:
    try:
        async with asyncio.timeout(READY_SECONDS):
            while (target := local.announced(folder / "data")) is None:
                if process.poll() is not None:
                    raise NotUp((folder / "up.output").read_text(encoding="utf-8"))
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise NotUp(f"it did not start within {READY_SECONDS:g} s") from error
    return target


async def _healthy(target: str) -> None:
    async with grpc.aio.insecure_channel(target) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check  # type: ignore[attr-defined]  # its stubs lack it
        answer = await check(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=READY_SECONDS)
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise NotUp("it says that it does not serve")


def admin(child: Child, command: str) -> subprocess.CompletedProcess[str]:
    """Runs `palimpsest-admin` on the child's data."""
    return run_admin([command, "--data-dir", str(child.data_dir)], child.settings)


def run_admin(arguments: Sequence[str], settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs `palimpsest-admin` with these settings and waits for it."""
    return subprocess.run(
        [program("palimpsest-admin"), *arguments],
        env=environment(settings),
        capture_output=True,
        text=True,
        check=False,
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stops the product gently; at once when it takes too long. Idempotent."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
