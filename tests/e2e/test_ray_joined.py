"""`palimpsest up --ray-address`: the five services on a Ray that somebody else runs, and keeps."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc.aio
import psutil
import pytest

from palimpsest.v1 import job_pb2
from tests.doubles.product import Tenant
from tests.e2e.sockets import beyond_loopback
from tests.e2e.talking import Memory, names
from tests.e2e.up_process import UpProcess, clean_environment, program
from tests.fixtures_ray import SETTINGS

pytestmark = [pytest.mark.ray, pytest.mark.milvus, pytest.mark.slow, pytest.mark.timeout(600)]

ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
HEAD = ["start", "--head", "--block", "--port=0", "--node-ip-address=127.0.0.1", "--num-cpus=16"]
HEAD += ["--include-dashboard=false", f"--object-store-memory={80 * 2**20}"]


def token(folder: Path) -> dict[str, str]:
    """How Ray is told who may use it, and its users how to prove that they may."""
    file = folder / "token"
    file.write_text("a" * 64, encoding="utf-8")
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(file)}


@pytest.fixture
def ray_of_others(tmp_path: Path) -> Iterator[psutil.Process]:
    """A Ray head on loopback that is none of ours; gone with all its processes afterwards."""
    environment = clean_environment(SETTINGS | ON_LOOPBACK | token(tmp_path))
    folder = tempfile.mkdtemp(prefix="ray-")  # a short path: it has sockets there
    command = [program("ray"), *HEAD, f"--temp-dir={folder}"]
    with (tmp_path / "ray.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield psutil.Process(process.pid)
    finally:
        family = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.wait(60)
        for left in psutil.wait_procs(family, timeout=20)[1]:
            left.kill()
        shutil.rmtree(folder)


def address_of(ray: psutil.Process) -> str:
    """host:port of its control plane, once it has one."""
    for _ in range(600):
        for child in ray.children(recursive=True):
            found = re.search(r"--gcs-address=(\S+)", " ".join(child.cmdline()))
            if found and child.name() == "raylet":
                return found[1]
        psutil.wait_procs([ray], timeout=0.1)
    raise AssertionError("Ray did not start")


def serving(ray: psutil.Process) -> list[psutil.Process]:
    return [one for one in ray.children(recursive=True) if "ServeReplica:" in " ".join(one.cmdline())]


async def test_the_services_join_and_leave_it_running(ray_of_others: psutil.Process, tmp_path: Path) -> None:
    address = address_of(ray_of_others)
    settings = SETTINGS | ON_LOOPBACK | token(tmp_path) | {"PALIMPSEST_RAY_ADDRESS": address}
    with UpProcess(tmp_path / "data", settings, runtime="ray") as up:
        tenant = up.tenant()
        async with grpc.aio.insecure_channel(up.target) as channel:
            memory = Memory(Tenant(tenant.id, tenant.key, channel), "mara")
            job = await memory.say("Ana lives in Graz.", at="2025-02-01")
            assert job.state == job_pb2.JOB_STATE_SUCCEEDED
            answer = await memory.recall("Where does Ana live?", min_revision=job.revision)
            assert ("Ana", "lives_in", "Graz") in names(answer.facts)
        replicas = serving(ray_of_others)
        assert len(replicas) >= 5, "in its processes, not in ours"
        assert beyond_loopback(up.family()) == []
    assert ray_of_others.is_running()
    gone, alive = psutil.wait_procs(replicas, timeout=60)
    assert (len(gone), alive) == (len(replicas), []), "no application of ours stays"


def test_who_has_no_token_is_told_so(ray_of_others: psutil.Process, tmp_path: Path) -> None:
    told = refused(tmp_path, address_of(ray_of_others), {"RAY_AUTH_MODE": "disabled"})
    assert "RAY_AUTH_TOKEN_PATH" in told


def test_a_ray_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    assert "no Ray at 127.0.0.1:1: " in refused(tmp_path, "127.0.0.1:1", {})


def refused(folder: Path, address: str, environment: dict[str, str]) -> str:
    """The line with which `palimpsest up` ends when it can't join."""
    done = subprocess.run(
        [program("palimpsest"), "up", "--ray-address", address, "--data-dir", folder / "data", "--port", "0"],
        env=clean_environment(SETTINGS | ON_LOOPBACK | environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("can't start: ")]
    return line
