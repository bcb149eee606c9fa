"""The double answers as a real server did: each recording of tests/golden/nebula is played to it.

Rows of statements without an order may come in any. Numbers in messages (sessions, partitions) may differ.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.graphd import Graphd
from tests.doubles.graphd.client import Answer, Client, Step
from tests.doubles.graphd.scenarios import OPENING, cluster_dependent, scenarios
from tests.machine import ROOT

RECORDINGS = sorted((ROOT / "tests" / "golden" / "nebula").glob("*.json"))


def seen(statement: str, answer: Answer) -> dict[str, Any]:
    """What must be the same."""
    rows = [] if cluster_dependent(statement) else answer.rows
    return {
        "code": answer.code,
        "message": re.sub(r"\d+", "N", answer.message),
        "columns": answer.columns,
        "rows": rows if "ORDER BY" in statement else sorted(rows, key=json.dumps),
    }


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_the_double_answers_as_the_server_did(graphd_double: Graphd, recording: Path) -> None:
    steps = json.loads(recording.read_text(encoding="utf-8"))["steps"]
    with Client(graphd_double.address) as client:
        for step in OPENING:
            assert client.take(step).code == 0
        differences = []
        for told in steps:
            statement = told["statement"]
            recorded = Answer(told["code"], told["message"], told["columns"], told["rows"])
            given = seen(statement, client.take(Step(statement, told["parameters"])))
            if given != seen(statement, recorded):
                differences.append((statement[:300], seen(statement, recorded), given))
        assert not differences


def test_the_double_knows_every_statement_of_the_store(graphd_double: Graphd) -> None:
    with Client(graphd_double.address) as client:
        for step in (*OPENING, *scenarios()["statements"]):
            answer = client.take(step)
            assert answer.code == 0, (step.statement[:300], answer.message)
