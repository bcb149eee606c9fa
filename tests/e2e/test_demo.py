"""The demo: the story holds, and nothing of it stays."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from tests.e2e.up_process import clean_environment
from tests.machine import ROOT

pytestmark = pytest.mark.milvus


def start(folder: Path, *options: str, **environment: str) -> "subprocess.Popen[str]":
    """The demo as `make demo` runs it, with a folder for temporary files of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "gateway.demo", *options],
        cwd=ROOT,
        env=clean_environment({"TMPDIR": str(folder), "COLUMNS": "160", **environment}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def products(folder: Path) -> list[psutil.Process]:
    """Processes that run on a data folder under `folder`."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in argument for argument in process.info["cmdline"] or ()):
            found.append(process)
    return found


@pytest.mark.slow  # a Ray of its own; every day's run has the main path on the one that tests share
@pytest.mark.timeout(240)
def test_the_short_story_holds_and_leaves_nothing(tmp_path: Path) -> None:
    demo = start(tmp_path, "--short")
    told, _ = demo.communicate()
    assert demo.returncode == 0, told
    assert "Every fact held" in told
    assert told.count("✓") >= 20
    assert "✗ " in told  # what ended is marked
    for part in ("engine: offline", "source removed", "nothing was known", "Wen → Study → KV", "SMALL_TALK"):
        assert part in told
    assert not list(tmp_path.iterdir())
    assert not products(tmp_path)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(600)
def test_the_short_story_holds_on_productions_stores(tmp_path: Path) -> None:
    # Not in this test's own folder: PostgreSQL runs as another user where the tests run as root.
    demo = start(tmp_path, "--short", STORES="production", TMPDIR=tempfile.gettempdir())
    told, _ = demo.communicate()
    assert demo.returncode == 0, told
    assert "Every fact held" in told
    for part in ("PostgreSQL", "Milvus", "NebulaGraph", "palimpsest-admin bootstrap", "usable"):
        assert part in told


@pytest.mark.parametrize(
    ("environment", "why"),
    [({"STORES": "etched"}, "STORES=etched"), ({"STORES": "production", "KEEP": "1"}, "KEEP=1")],
)
def test_stores_that_it_can_not_have_are_told(tmp_path: Path, environment: dict[str, str], why: str) -> None:
    demo = start(tmp_path, **environment)
    told, _ = demo.communicate()
    assert demo.returncode == 1
    assert why in told
    assert "Traceback" not in told


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_whole_story_holds(tmp_path: Path) -> None:
    demo = start(tmp_path)
    told, _ = demo.communicate()
    assert demo.returncode == 0, told
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_kept_story_can_be_talked_to_and_stopped_as_it_says(tmp_path: Path) -> None:
    demo = start(tmp_path, "--short", KEEP="1")
    told, _ = demo.communicate()
    assert demo.returncode == 0, told
    lines = told[told.index("export PALIMPSEST_TARGET=") :].splitlines()
    stop = next(line for line in lines if line.startswith("kill -INT"))
    talk = [line for line in lines if line.startswith(("export ", "palimpsest "))]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    try:
        done = subprocess.run(
            ["bash", "-euc", "\n".join(talk)],
            env=clean_environment({"PATH": path}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "(John) --[works_at]--> (Google)" in done.stdout
    finally:
        subprocess.run(["bash", "-c", stop], check=True, timeout=60)
    assert not products(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_a_story_that_is_interrupted_stops_what_it_started(
    tmp_path: Path, with_signal: signal.Signals
) -> None:
    demo = start(tmp_path, "--short")
    deadline = time.monotonic() + 60
    while not products(tmp_path) and time.monotonic() < deadline:
        assert demo.poll() is None
        time.sleep(0.2)
    assert products(tmp_path)
    demo.send_signal(with_signal)
    told, _ = demo.communicate()
    assert demo.returncode == 130, told
    # What had only just been started ends by itself, when it misses its parent.
    deadline = time.monotonic() + 30
    while products(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not products(tmp_path)
    assert not list(tmp_path.iterdir())
