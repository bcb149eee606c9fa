"""Ingestion rules as the gateway keeps them: set, replaced, removed, listed, and what they come to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import ValidationFailed
from gateway.store.rules import IngestionRules, Rule, Ruled
from palimpsest.v1 import graph_pb2, graph_pb2_grpc
from services.stores.paging import Page
from tests.doubles.gateway import ACME, GLOBEX, RunningGateway, graph, running_gateway


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path) as running:
        yield running


def a_rule(
    source: str, graph_id: str = "", trust: float | None = None, told: str = ""
) -> graph_pb2.IngestionRule:
    return graph_pb2.IngestionRule(graph_id=graph_id, source=source, trust=trust, instructions=told)


async def put(running: RunningGateway, rule: graph_pb2.IngestionRule) -> graph_pb2.IngestionRule:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    asked = graph_pb2.SetIngestionRuleRequest(rule=rule)
    answer: graph_pb2.SetIngestionRuleResponse = await running.call(stub.SetIngestionRule, asked)
    return answer.rule


async def listed(
    running: RunningGateway, graph_id: str = "", key: str = "acme"
) -> list[graph_pb2.IngestionRule]:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    request = graph_pb2.ListIngestionRulesRequest(graph_id=graph_id, page_size=1)
    found: list[graph_pb2.IngestionRule] = []
    while True:
        page = await running.call(stub.ListIngestionRules, request, key)
        found += page.rules
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def test_rules_are_set_replaced_removed_and_listed_by_source(running: RunningGateway) -> None:
    mail, chat = a_rule("mail", trust=0.5), a_rule("chat", told="Keep decisions.")
    for rule in (mail, chat, mail):
        assert await put(running, rule) == rule
    assert await listed(running) == [chat, mail]
    louder = a_rule("mail", trust=0, told="Leave out signatures.")
    await put(running, louder)
    assert await listed(running) == [chat, louder]
    assert await put(running, a_rule("mail", told="  \n ")) == a_rule("mail")
    assert await listed(running) == [chat]
    assert await listed(running, key="globex") == []


async def test_a_rule_makes_its_graph_and_a_list_of_an_unknown_one_fails(running: RunningGateway) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    asked = graph_pb2.ListIngestionRulesRequest(graph_id="g")
    assert (await running.refused(stub.ListIngestionRules, asked)).reason == "GRAPH_NOT_FOUND"
    await put(running, a_rule("mail", "g", 0.5))
    assert await listed(running, "g") == [a_rule("mail", "g", 0.5)]
    assert await listed(running) == []
    assert (await running.refused(stub.ListIngestionRules, asked, "globex")).reason == "GRAPH_NOT_FOUND"


@pytest.mark.parametrize(
    "rule", [a_rule(""), a_rule("mail", trust=1.5), a_rule("mail", told="x" * 4_001), a_rule("mail\n")]
)
async def test_a_rule_that_breaks_its_fields_is_refused(
    running: RunningGateway, rule: graph_pb2.IngestionRule
) -> None:
    stub = graph_pb2_grpc.GraphServiceStub(running.channel)
    refusal = await running.refused(stub.SetIngestionRule, graph_pb2.SetIngestionRuleRequest(rule=rule))
    assert refusal.reason == "VALIDATION_FAILED"


async def test_what_rules_come_to_for_a_text(running: RunningGateway) -> None:
    rules, mine, other = running.stores.rules, graph(ACME), graph(GLOBEX)
    assert await rules.for_text(mine, "mail") == Ruled()
    await put(running, a_rule("mail", trust=0.5, told="Everywhere."))
    assert await rules.for_text(mine, "mail") == Ruled(("Everywhere.",), 0.5)
    await put(running, a_rule("mail", mine.graph, told="Here."))
    assert await rules.for_text(mine, "mail") == Ruled(("Everywhere.", "Here."), 0.5)
    await put(running, a_rule("mail", mine.graph, 0.0))
    assert await rules.for_text(mine, "mail") == Ruled(("Everywhere.",), 0.0)
    assert await rules.for_text(mine, "") == await rules.for_text(mine, "Mail") == Ruled()
    assert await rules.for_text(other, "mail") == Ruled()


async def test_there_are_only_so_many_of_a_graph(running: RunningGateway) -> None:
    stores = running.stores
    rules = IngestionRules(stores.ledger_database, stores.clock, stores.graphs, most=2)
    for source in ("a", "b", "a"):
        await rules.set(ACME, "", Rule(source, 0.5))
    with pytest.raises(ValidationFailed):
        await rules.set(ACME, "", Rule("c", 0.5))
    await rules.set(ACME, "g", Rule("c", 0.5))
    await rules.set(GLOBEX, "", Rule("c", 0.5))
    assert [rule.source for rule in (await rules.list(ACME, "", Page())).items] == ["a", "b"]
