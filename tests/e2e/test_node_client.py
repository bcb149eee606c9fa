"""A client in another language: the Node program of examples/node, from the protos alone."""

import shutil
import subprocess

import pytest

from tests.conftest import lack
from tests.e2e.up_process import UpProcess
from tests.machine import ROOT

pytestmark = pytest.mark.milvus

EXAMPLE = ROOT / "examples" / "node"
INSTALLED = EXAMPLE / "node_modules" / ".installed"


@pytest.fixture(scope="module")
def node() -> str:
    """Node, with the packages of the lock."""
    found = shutil.which("node")
    if found is None:
        lack("node is not installed (see `make doctor`)")
    if not INSTALLED.is_file():
        lack("the npm packages of examples/node are not installed: `make node` does it, where npm is")
    return found


def run(node: str, *arguments: str, key: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [node, "--trace-warnings", "example.mjs", *arguments],
        cwd=EXAMPLE,
        env={"PATH": "", "PALIMPSEST_KEY": key},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_it_says_watches_recalls_and_reads_why_it_is_refused(node: str, running: UpProcess) -> None:
    done = run(node, running.target, "notes", key=running.tenant().key)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "graph of Mara, new"
    assert lines.count("said again under its request id: the same job") == 2
    jobs = [line for line in lines if line.startswith("JOB_STATE_")]
    assert [line.partition(" micro-")[0].rpartition(" ")[0] for line in jobs] == [
        "JOB_STATE_SUCCEEDED, revision 1,",
        "JOB_STATE_SUCCEEDED, revision 2,",
    ]
    assert "- (Mara) --[lives_in]--> (Linz)  since 2025-05 [e1]" in lines
    assert lines[-4:] == [
        "✗ Graz since 2024-03-01 until 2025-05",
        "● Linz since 2025-05",
        "refused: NOT_FOUND GRAPH_NOT_FOUND: no such graph",
        "refused: INVALID_ARGUMENT VALIDATION_FAILED: kind, text",
    ]


@pytest.mark.slow
def test_it_tells_a_key_that_is_none_in_one_line(node: str, running: UpProcess) -> None:
    done = run(node, running.target, "notes", key="nonsense")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "API_KEY_INVALID: no valid API key\n"
