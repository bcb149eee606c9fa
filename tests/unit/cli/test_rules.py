"""`source rule` and `source rules`: what they ask and what they show."""

import pytest

from palimpsest.cli.exits import Exit
from palimpsest.v1 import graph_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted

RULE = graph_pb2.IngestionRule(source="slack", trust=0.25, instructions="Keep decisions.")


@pytest.fixture(autouse=True)
def script(server: Scripted) -> None:
    server.answers("SetIngestionRule", graph_pb2.SetIngestionRuleResponse(rule=RULE))
    server.answers("ListIngestionRules", graph_pb2.ListIngestionRulesResponse(rules=[RULE]))


def test_a_rule_is_set_for_a_graph_or_for_all(server: Scripted, run: Run) -> None:
    told = ["--trust", "0.25", "--instructions", "Keep decisions."]
    shown = run("source", "rule", "slack", *told)
    assert (shown.exit_code, server.last.rule) == (0, RULE)
    assert "every graph" in shown.stdout
    assert run("source", "rule", "slack", "--graph", "g", "--trust", "0").exit_code == 0
    assert server.last.rule == graph_pb2.IngestionRule(graph_id="g", source="slack", trust=0)


def test_a_rule_is_removed_only_when_that_is_said(server: Scripted, run: Run) -> None:
    assert run("source", "rule", "slack").exit_code == Exit.USAGE
    assert run("source", "rule", "slack", "--remove", "--trust", "1").exit_code == Exit.USAGE
    assert run("source", "rule", "slack", "--remove").exit_code == 0
    assert server.last.rule == graph_pb2.IngestionRule(source="slack")


def test_rules_are_listed(server: Scripted, run: Run) -> None:
    shown = run("source", "rules", "--graph", "g")
    assert (shown.exit_code, server.last.graph_id) == (0, "g")
    assert "Keep decisions." in shown.stdout
    assert "0.25" in shown.stdout
    server.answers("ListIngestionRules", graph_pb2.ListIngestionRulesResponse())
    assert "no rules" in run("source", "rules").stdout
