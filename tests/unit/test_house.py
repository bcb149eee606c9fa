"""The rules of the house that a linter does not know: sizes, no traces of a machine, the given cases."""

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.machine import ROOT, SHARED

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

# Outliers with their reasons: "path" for a file, "path::Class.function" for a function.
OUTLIERS: dict[str, str] = {}

GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")
# Written in pieces, so that this file doesn't find itself.
TRACES = re.compile(
    "|".join(
        [
            r"(?<![\w.$}])/(work|tmp|farm|root|home)" + r"/[A-Za-z]",
            "pypi" + r"\.org",
            "python" + "hosted",
            "registry" + r"\.npmjs",
            "deb" + r"\.debian",
        ]
    )
)


@cache
def tracked() -> tuple[Path, ...]:
    """The files of the repository, without generated ones; everything here when git is absent."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
    paths = (ROOT / name for name in names if name and not GENERATED.search(name))
    return tuple(sorted(path for path in paths if path.is_file()))


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """The qualified name and length in lines of each function."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    assert child.end_lineno is not None
                    yield name, child.end_lineno - child.lineno + 1
                yield from walk(child, f"{name}.")
            elif not isinstance(child, ast.expr):  # which defines nothing
                yield from walk(child, prefix)

    return walk(tree, "")


@dataclass(frozen=True, slots=True)
class Module:
    """What the rules ask of one: its lines, its long functions with theirs, whether it says what it owns."""

    lines: int
    long: tuple[tuple[str, int], ...]
    speaks: bool


@cache
def read(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    long = tuple(each for each in functions(tree) if each[1] > MAX_FUNCTION_LINES)
    return Module(text.count("\n"), long, bool(ast.get_docstring(tree)))


def measured(path: Path, root: Path) -> Iterator[tuple[str, int]]:
    """The outliers of one file, with their lengths."""
    name, module = path.relative_to(root).as_posix(), read(path)
    if module.lines > MAX_FILE_LINES:
        yield name, module.lines
    for function, length in module.long:
        yield f"{name}::{function}", length


def test_no_outlier_without_a_reason() -> None:
    found = dict(outlier for path in tracked() if path.suffix == ".py" for outlier in measured(path, ROOT))
    unexplained = {name: length for name, length in found.items() if name not in OUTLIERS}
    assert not unexplained, f"split these by idea, or give a reason in OUTLIERS: {unexplained}"
    assert not OUTLIERS.keys() - found.keys(), "no outliers any more: take them out of OUTLIERS"


def test_every_module_says_what_it_owns() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in tracked()
        if path.suffix == ".py" and not read(path).speaks
    ]
    assert not silent


def test_outliers_are_seen(tmp_path: Path) -> None:
    body = "\n".join(["        pass"] * MAX_FUNCTION_LINES)
    long = tmp_path / "long.py"
    long.write_text(f"class A:\n    def b(self):\n{body}\n" + "\n" * MAX_FILE_LINES, encoding="utf-8")
    assert dict(measured(long, tmp_path)) == {
        "long.py": MAX_FILE_LINES + MAX_FUNCTION_LINES + 2,
        "long.py::A.b": MAX_FUNCTION_LINES + 1,
    }


def test_no_trace_of_a_machine() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(text.splitlines(), start=1)
            if TRACES.search(line)
        ]
    assert not found, "paths of a machine or hosts of registries:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("line", "is_trace"),
    [
        ("see /work" + "/main", True),
        ('"/tmp' + '/x.db"', True),
        ("https://pypi" + ".org/simple", True),
        ("$HOME/work" + "/x", False),
        ("a/tmp" + "/b", False),
        ("/var/lib/palimpsest", False),
    ],
)
def test_traces_are_seen(line: str, is_trace: bool) -> None:
    assert bool(TRACES.search(line)) is is_trace


def test_cases_are_those_given(cases: Path) -> None:
    given = SHARED / "cases"
    if not given.is_dir():
        pytest.skip("no folder shared/cases beside the repository")
    assert {path.name: path.read_bytes() for path in cases.iterdir()} == {
        path.name: path.read_bytes() for path in given.iterdir()
    }
