"""README.md runs: what it says to type works in its order, and prints what it shows.

Its reader is the first who does anything with the product that tests share (tests/conftest.py), as whoever
reads it is.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.reader import terminal
from tests.e2e.up_process import UpProcess
from tests.machine import ROOT

pytestmark = pytest.mark.milvus

BLOCKS: list[str] = re.findall(
    r"^```\w*\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
)
KEYS = 'printf "%s\\n%s\\n" "$PALIMPSEST_OPERATOR_KEY" "$PALIMPSEST_KEY" > keys'


def block(part: str) -> str:
    """The one block that contains `part`."""
    (found,) = [text for text in BLOCKS if part in text]
    return found


def trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@pytest.fixture(scope="module")
def environment(running: UpProcess) -> dict[str, str]:
    """What the second terminal has."""
    return terminal(running)


def typed(commands: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def told(running: UpProcess, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the commands of the tour print; afterwards the environment has their keys."""
    folder = tmp_path_factory.mktemp("readme")
    printed = typed(f"{block('palimpsest-admin init')}\n{KEYS}", folder, environment)
    operator, key = (folder / "keys").read_text("utf-8").split()
    running.operator_key = operator
    environment |= {"PALIMPSEST_OPERATOR_KEY": operator, "PALIMPSEST_KEY": key}
    return printed


def test_the_tour_prints_the_timeline_that_the_readme_opens_with(told: str) -> None:
    _, *shown = trimmed(block("$ palimpsest timeline mara User lives_in"))
    lines = trimmed(told)
    start = lines.index(shown[0])
    assert lines[start : start + len(shown)] == shown


def test_the_tour_answers_now_and_then_and_refunds_small_talk(told: str) -> None:
    now, then = told.split("## Facts\n")[1:]
    assert now.startswith("- (User) --[lives_in]--> (Linz)  since 2025-05 [e1]\n")
    assert then.startswith("- (User) --[lives_in]--> (Graz)  since 2024-03-01 until 2025-05 [e1]\n")
    assert "0 spent" in told
    assert "SMALL_TALK" in told


def test_two_versions_of_a_document(told: str, environment: dict[str, str], tmp_path: Path) -> None:
    shown = typed(block("--document handbook"), tmp_path, environment)
    assert "handbook version 2" in shown
    assert re.search(r"✗  MySQL +2026-01-15  2026-03-01", shown)
    assert re.search(r"●  PostgreSQL +2026-03-01", shown)


def test_the_program_runs_as_it_stands(told: str, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(block("from palimpsest import Client, Memory"), encoding="utf-8")
    printed = typed(f"{sys.executable} -W error program.py", tmp_path, environment)
    assert "## Facts\n- (User) --[lives_in]--> (Vienna)  since 20" in printed
