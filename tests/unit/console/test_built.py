"""The committed page is what its sources build: by their digest each day, by building it in the long run."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import lack
from tests.machine import ROOT

SOURCES = ROOT / "console"
BUILT = ROOT / "palimpsest" / "console" / "page"
BESIDE = ("build.mjs", "package.json", "package-lock.json", "tsconfig.json")


def digest() -> str:
    """As console/build.mjs makes it."""
    paths = [path for path in (SOURCES / "src").rglob("*") if path.is_file()]
    paths += [SOURCES / name for name in BESIDE]
    found = hashlib.sha256()
    for name in sorted(path.relative_to(SOURCES).as_posix() for path in paths):
        found.update(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0")
    return found.hexdigest()


def test_the_committed_page_is_of_these_sources() -> None:
    told = (BUILT / "sources.sha256").read_text(encoding="utf-8").strip()
    assert told == digest(), "`make console` builds the page anew; commit what it makes"


@pytest.mark.slow
def test_building_makes_the_committed_page(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (SOURCES / "node_modules" / "esbuild").is_dir():
        lack("the npm packages of console are not installed: `make node` does it, where npm is")
    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=SOURCES, check=True, timeout=100)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in BUILT.iterdir()}


def test_sources_are_short() -> None:
    for path in (SOURCES / "src").rglob("*.ts*"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path.name


def test_the_page_names_no_other_place() -> None:
    script = (BUILT / "console.js").read_text(encoding="utf-8")
    named = {
        part.split('"')[0].split("`")[0].split("'")[0]
        for part in script.split("http")[1:]
        if part[:3] in ("://", "s:/")
    }
    assert named <= {"://www.w3.org/2000/svg", "://www.w3.org/1998/Math/MathML", "://www.w3.org/1999/xhtml"}
