"""Histories as they are written: linear, numbered, first a baseline that no later code reaches into."""

import ast
from pathlib import Path

import pytest

from services.stores.sql.engine import engine_for
from services.stores.sql.grants import grant_sql
from services.stores.sql.migrations import Schema, migrates
from tests.doubles.schemas import SCHEMAS
from tests.machine import ROOT

# What a revision may import of ours: helpers that are only ever added to.
OURS = {"services.stores.sql.revising"}


@pytest.fixture(params=sorted(SCHEMAS))
def schema(request: pytest.FixtureRequest) -> Schema:
    return SCHEMAS[request.param]


def files(schema: Schema) -> list[Path]:
    return sorted(schema.folder.glob("r*.py"))


def test_a_history_is_one_line_of_numbers(schema: Schema) -> None:
    numbers = [f"{number:04}" for number in range(1, len(files(schema)) + 1)]
    assert schema.revisions() == numbers
    assert [file.name[1:5] for file in files(schema)] == numbers
    assert schema.head == numbers[-1]


def test_revisions_are_frozen(schema: Schema) -> None:
    for file in files(schema):
        imported = {
            node.module
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module is not None
        }
        reached = {name for name in imported if name.split(".")[0] in ("services", "gateway", "palimpsest")}
        assert reached <= OURS, f"{file.relative_to(ROOT)} changes when {reached - OURS} does"


def test_stores_can_share_a_database(schema: Schema) -> None:
    others = [other for other in SCHEMAS.values() if other is not schema]
    assert not {name for other in others for name in other.metadata.tables} & set(schema.metadata.tables)
    assert schema.version_table not in {other.version_table for other in others}


@pytest.mark.parametrize(
    ("policy", "sqlite", "postgres"),
    [("embedded", True, False), ("always", True, True), ("never", False, False)],
)
def test_who_migrates(policy: str, sqlite: bool, postgres: bool) -> None:
    for url, expected in (("sqlite:///a.db", sqlite), ("postgresql://h/d", postgres)):
        assert migrates(policy, engine_for(url)) is expected  # type: ignore[arg-type]  # of a parameter


def test_a_role_may_use_what_there_is_and_no_more() -> None:
    postgres = engine_for("postgresql://h/d")
    told = grant_sql(postgres, SCHEMAS["ledger"], 'odd"name')
    assert 'GRANT SELECT, INSERT, UPDATE, DELETE ON jobs TO "odd""name";' in told.splitlines()
    assert told.count("SEQUENCE") == 2  # of the journal's two tables
    assert not any(word in told for word in ("ALL", "TRUNCATE", "REFERENCES", "GRANT OPTION"))
    assert grant_sql(engine_for("sqlite:///a.db"), SCHEMAS["ledger"], "x") == ""
