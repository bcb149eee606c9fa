"""Ray for tests: the product on Ray, once for the whole run."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen

import pytest

from tests.contracts.five_services import SECRET
from tests.e2e.up_process import UpProcess, telling
from tests.machine import ROOT

SETTINGS = {"PYTHONPATH": str(ROOT), "PALIMPSEST_ASSERTION_SECRET": SECRET}
"""Replicas find the tests' own services too, and answer calls that a test has signed."""
_STOP_SECONDS = 60


@pytest.fixture(scope="session")
def on_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """`palimpsest up` on Ray. Tests may kill replicas of it: they come back."""
    folder = tmp_path_factory.mktemp("ray")
    with UpProcess(folder / "data", SETTINGS | telling(folder), runtime="ray") as up:
        yield up


@pytest.fixture(scope="session")
def odd_on_ray(on_ray: UpProcess) -> Iterator[str]:
    """Where the odd service of the contracts can be called, beside the five."""
    with odd_beside(on_ray) as target:
        yield target


@contextmanager
def odd_beside(up: UpProcess) -> Iterator[str]:
    """Deploys the odd service beside the five of a product on Ray; where it can be called."""
    raylet = next(process for process in up.family() if process.name() == "raylet")
    address = next(word.partition("=")[2] for word in raylet.cmdline() if word.startswith("--gcs-address="))
    ray = {name: value for name, value in raylet.environ().items() if name.startswith("RAY_")}
    command = [sys.executable, "-m", "tests.doubles.odd_on_ray", address]
    process = Popen(command, cwd=ROOT, env=up.environment | ray, stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert any(line == "up\n" for line in process.stdout), "the odd service did not come up"
        yield up.services_target
    finally:
        process.stdin.close()
        process.wait(_STOP_SECONDS)
        process.stdout.close()
