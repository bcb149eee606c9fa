"""Reads after merges: two spellings are one entity everywhere, two again after a split, and two before."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import recall_lists_pb2 as lists_pb
from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import resolver_entities_pb2 as entities_pb
from palimpsest.internal.v1 import values_pb2 as values
from tests.builders import on
from tests.integration.recalling import Memory, a_memory, triple, triples
from tests.integration.resolving import TODAY

LIVES = "lives_in"
BEFORE = values.KnownAt(revision=4)
"""The last revision before the merge."""


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """Maya Kapoor and Maya K., told apart for four revisions, then merged."""
    async with a_memory(tmp_path, [LIVES]) as memory:
        await memory.tell("graz", "2020-01-05", ("Maya Kapoor", LIVES, "Graz"), since="2020-01-01")
        await memory.tell("linz", "2022-01-05", ("Maya K.", LIVES, "Linz"), since="2022-01-01")
        await memory.tell("tea", "2022-02-01", ("Maya K.", "drinks", "tea"), ("Maya Kapoor", "drinks", "tea"))
        await memory.tell("ben", "2022-03-01", ("Ben", "knows", "Maya K."), ("Graz", "lies_on", "Mur"))
        await merge(memory)
        yield memory


async def card(memory: Memory, name: str, **fields: Any) -> lists_pb.EntityCard:
    request = lists_pb.ReadEntityRequest(entity=name, now=TODAY, **fields)
    return (await memory.recall.read_entity(memory.world.scope, request)).entity


async def merge(memory: Memory) -> None:
    into, other = [(await card(memory, name)).entity.id for name in ("Maya Kapoor", "Maya K.")]
    request = entities_pb.MergeRequest(commit_id="m", into_id=into, entity_ids=[other], actor="key:k", why="")
    await memory.world.resolver.merge(memory.world.scope, request)


async def split(memory: Memory) -> None:
    [other] = (await card(memory, "Maya K.")).merged_ids
    request = entities_pb.SplitRequest(commit_id="s", entity_id=other, actor="key:k", why="")
    await memory.world.resolver.split(memory.world.scope, request)


async def timeline(memory: Memory, subject: str, **fields: Any) -> list[tuple[str, str]]:
    request = pb.ReadTimelineRequest(subject=subject, predicate=LIVES, now=TODAY, **fields)
    answer = await memory.recall.read_timeline(memory.world.scope, request)
    assert all(entry.statement.subject == answer.subject for entry in answer.entries)
    return [(answer.subject.name, triple(entry.statement)[2]) for entry in answer.entries]


async def listed(memory: Memory, **fields: Any) -> list[tuple[str, str, str]]:
    request = pb.ListStatementsRequest(now=TODAY, **fields)
    answer = await memory.recall.list_statements(memory.world.scope, request)
    return [triple(statement) for statement in answer.statements]


async def walked(memory: Memory, seed: str, hops: int = 2, **fields: Any) -> set[tuple[int, str, str]]:
    request = pb.WalkRequest(seeds=[seed], max_hops=hops, now=TODAY, **fields)
    answer = await memory.recall.walk(memory.world.scope, request)
    return {
        (step.hop, triple(step.statement)[0], triple(step.statement)[2])
        for step in answer.steps
        if step.via in (step.statement.subject.id, step.statement.entity.id)
    }


async def test_one_timeline_while_they_are_one(memory: Memory) -> None:
    one = [("Maya Kapoor", "Graz"), ("Maya Kapoor", "Linz")]
    assert await timeline(memory, "Maya K.") == await timeline(memory, "maya kapoor") == one
    by_id = (await card(memory, "Maya Kapoor")).merged_ids[0]
    assert await timeline(memory, by_id) == one
    assert await timeline(memory, "Maya K.", known_at=BEFORE) == [("Maya K.", "Linz")]
    assert await timeline(memory, "Maya Kapoor", known_at=BEFORE) == [("Maya Kapoor", "Graz")]
    await split(memory)
    assert await timeline(memory, "Maya K.") == [("Maya K.", "Linz")]
    assert await timeline(memory, "Maya Kapoor") == [("Maya Kapoor", "Graz")]
    assert await timeline(memory, "Maya K.", known_at=values.KnownAt(revision=5)) == one


async def test_the_border_that_the_merge_made_has_its_cause(memory: Memory) -> None:
    request = pb.ReadTimelineRequest(subject="Maya K.", predicate=LIVES, now=TODAY)
    graz, linz = (await memory.recall.read_timeline(memory.world.scope, request)).entries
    assert graz.statement.spans[0].ended_by_episode == "episode-linz"
    assert graz.statement.spans[0].ended_by_statement == linz.statement.id


async def test_lists_find_and_show_what_they_read_as(memory: Memory) -> None:
    merged = [("Maya Kapoor", LIVES, "Linz"), ("Maya Kapoor", "drinks", "tea")]
    assert await listed(memory, subject="Maya K.") == merged
    assert await listed(memory, object="Maya Kapoor") == [("Ben", "knows", "Maya Kapoor")]
    assert await listed(memory, subject="Maya K.", known_at=BEFORE) == [
        ("Maya K.", LIVES, "Linz"),
        ("Maya K.", "drinks", "tea"),
    ]
    assert await listed(memory, object="Maya Kapoor", known_at=BEFORE) == []


async def test_one_fact_has_the_evidence_of_both(memory: Memory) -> None:
    request = pb.ListStatementsRequest(now=TODAY, subject="Maya K.", predicate="drinks")
    [tea] = (await memory.recall.list_statements(memory.world.scope, request)).statements
    read = pb.ReadStatementRequest(statement_id=tea.id)
    found = (await memory.recall.read_statement(memory.world.scope, read)).statement
    assert sorted(record.quote for record in found.records) == [
        "Maya K. drinks tea",
        "Maya Kapoor drinks tea",
    ]
    assert (found.subject.name, found.subject.id) == ("Maya Kapoor", tea.subject.id)


async def test_a_walk_crosses_the_merge(memory: Memory) -> None:
    assert await walked(memory, "Ben") == {
        (1, "Ben", "Maya Kapoor"),
        (2, "Maya Kapoor", "Linz"),
        (2, "Maya Kapoor", "tea"),
    }
    past = {"as_of": on("2021-01-01"), "include_ended": False}
    assert (1, "Maya Kapoor", "Graz") in await walked(memory, "Maya K.", **past)
    assert (2, "Graz", "Mur") in await walked(memory, "Maya K.", include_ended=True)
    assert await walked(memory, "Ben", known_at=BEFORE) == {
        (1, "Ben", "Maya K."),
        (2, "Maya K.", "Linz"),
        (2, "Maya K.", "tea"),
    }


async def test_one_answer(memory: Memory) -> None:
    for question in ("Where does Maya K. live?", "Where does Maya Kapoor live?"):
        answer = await memory.ask(question, max_hops=1)
        assert triples(answer)[0] == ("Maya Kapoor", LIVES, "Linz")
        [linz] = [fact for fact in answer.facts if triple(fact.statement)[2] == "Linz"]
        assert [triple(one)[2] for one in linz.replaced] == ["Graz"]
        assert [entity.name for entity in answer.plan.entities] == ["Maya Kapoor"]
    earlier = await memory.ask("Where does Maya Kapoor live?", known_at=BEFORE)
    assert triples(earlier)[0] == ("Maya Kapoor", LIVES, "Graz")
    hinted = await memory.ask("", entity_hints=["Maya K."], include_passages=False)
    assert {one[0] for one in triples(hinted)} <= {"Maya Kapoor", "Ben", "Graz"}
    await split(memory)
    assert ("Maya K.", LIVES, "Linz") in triples(await memory.ask("Where does Maya K. live?"))


async def test_cards_of_both(memory: Memory) -> None:
    whole = await card(memory, "Maya K.")
    assert (whole.entity.name, list(whole.entity.aliases)) == ("Maya Kapoor", ["Maya K."])
    assert whole.statements == 3
    [other] = whole.merged_ids
    alone = await card(memory, other)
    assert (alone.entity.name, alone.merged_into) == ("Maya K.", whole.entity.id)
    then = await card(memory, "Maya K.", known_at=BEFORE)
    assert (then.entity.name, then.merged_into, list(then.merged_ids)) == ("Maya K.", "", [])

    async def names(**fields: Any) -> list[str]:
        request = lists_pb.ListEntitiesRequest(now=TODAY, **fields)
        answer = await memory.recall.list_entities(memory.world.scope, request)
        return [one.entity.name for one in answer.entities]

    assert await names(name_prefix="maya") == ["Maya Kapoor"]
    assert await names(name_prefix="maya k.") == ["Maya Kapoor"]
    assert await names(name_prefix="maya", include_merged=True) == ["Maya K.", "Maya Kapoor"]
    assert await names(name_prefix="maya", known_at=BEFORE) == ["Maya K.", "Maya Kapoor"]
    await split(memory)
    assert await names(name_prefix="maya") == ["Maya K.", "Maya Kapoor"]
