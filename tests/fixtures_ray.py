"""Ray for tests: the product on Ray, once for the whole run."""

import sys
from collections.abc import Iterator
from subprocess import PIPE, Popen

import pytest

from tests.e2e.up_process import UpProcess
from tests.machine import ROOT

_INHERITED = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "PYTHONPATH")
_STOP_SECONDS = 60


@pytest.fixture(scope="session")
def on_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """`palimpsest up` on Ray. Tests may kill replicas of it: they come back."""
    settings = {"PYTHONPATH": str(ROOT)}
    with UpProcess(tmp_path_factory.mktemp("ray") / "data", settings, runtime="ray") as up:
        yield up


@pytest.fixture(scope="session")
def odd_on_ray(on_ray: UpProcess) -> Iterator[str]:
    """Where the odd service of the contracts can be called, beside the five."""
    raylet = next(process for process in on_ray.family() if process.name() == "raylet")
    address = next(word.partition("=")[2] for word in raylet.cmdline() if word.startswith("--gcs-address="))
    environment = on_ray.environment | {name: raylet.environ()[name] for name in _INHERITED}
    command = [sys.executable, "-m", "tests.doubles.odd_on_ray", address]
    process = Popen(command, cwd=ROOT, env=environment, stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert any(line == "up\n" for line in process.stdout), "the odd service did not come up"
        yield on_ray.services_target
    finally:
        process.stdin.close()
        process.wait(_STOP_SECONDS)
        process.stdout.close()
