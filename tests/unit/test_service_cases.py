"""Each line of tests/cases/service.yaml has a test that names it: `@pytest.mark.case("how it begins")`."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import yaml_files
from tests.machine import ROOT

LATER = {
    "twenty parallel jobs proposing the same new label": "labels come with the understanding of sessions",
}
"""Lines that no test can hold yet, by how they begin, and why."""


@cache
def lines() -> tuple[str, ...]:
    text = (ROOT / "tests" / "cases" / "service.yaml").read_text(encoding="utf-8")
    # Read by hand: to YAML some of these lines are mappings, for the colons in them.
    found = tuple(line.removeprefix("- ").strip() for line in text.splitlines() if line.startswith("- "))
    assert found
    return found


@cache
def named() -> dict[str, list[str]]:
    """The beginnings that tests name, each with those tests."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")) + sorted(
        (ROOT / "tests" / "contracts").glob("*.py")
    ):
        for name, beginning in cases_of(path):
            found.setdefault(beginning, []).append(f"{path.relative_to(ROOT)}::{name}")
    return found


def cases_of(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text(encoding="utf-8")
    if "mark.case(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.case":
                yield node.name, str(ast.literal_eval(mark.args[0]))


@pytest.mark.parametrize("line", lines())
def test_each_line_has_a_test_that_names_it(line: str) -> None:
    later = [beginning for beginning in LATER if line.startswith(beginning)]
    tests = [test for beginning, tests in named().items() if line.startswith(beginning) for test in tests]
    assert bool(tests) != bool(later), f"tests: {tests}; later: {later}"


def test_each_name_is_of_one_line() -> None:
    for beginning in [*named(), *LATER]:
        assert len([line for line in lines() if line.startswith(beginning)]) == 1, beginning


def test_the_file_is_a_list_of_as_many_lines(cases: Path) -> None:
    assert len(yaml_files.read(cases / "service.yaml")) == len(lines())
