"""Retention: what long ended is out of the way, is answered as of its time, and comes back as it was."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import recall_decisions_pb2 as decisions_pb
from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import values_pb2
from services.domain.errors import StatementNotFound
from services.domain.ids import Revision
from services.stores.vectors.port import Collection
from services.upkeep.differences import Kind
from services.upkeep.export import Export
from services.upkeep.intake import Intake
from services.upkeep.items import Point
from tests.builders import on
from tests.integration.archiving import archive, believed, lying, restore, rows, told
from tests.integration.recalling import Memory, a_memory, triples
from tests.integration.test_resolver import END
from tests.integration.upkeeping import stores_of, verify

GOOGLE, ACME = ("Maya", "works_at", "Google"), ("Maya", "works_at", "Acme")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """Maya worked at Google from 2012, at Acme since 2016; since 2014 she likes tea, and no rum any more."""
    async with a_memory(tmp_path, ["works_at"]) as memory:
        await memory.tell("one", "2012-02-01", GOOGLE)
        await memory.tell("two", "2014-02-01", ("Maya", "likes", "tea"), ("Maya", "likes", "rum"))
        await memory.tell("three", "2016-03-01", ACME)
        await memory.tell("four", "2016-03-02", ("Maya", "likes", "rum"), kind=END, end=on("2016-03-02"))
        memory.world.clock.at = on("2026-01-01")
        yield memory


async def statement(memory: Memory, of: tuple[str, str, str]) -> str:
    request = pb.ListStatementsRequest(include_ended=True, now=on("2026-01-01"), page_size=100)
    listed = await memory.recall.list_statements(memory.world.scope, request)
    [found] = [
        one.id
        for one in listed.statements
        if (one.subject.name, one.predicate.name, one.entity.name or one.literal.text) == of
    ]
    return found


async def test_what_ended_long_ago_is_found_by_who_asks_of_its_time(memory: Memory) -> None:
    google = await statement(memory, GOOGLE)
    questions: list[dict[str, Any]] = [
        {"as_of": on("2013-01-01")},
        {"include_ended": True},
        {"range_start": on("2012-01-01"), "range_end": on("2013-01-01")},
        {"known_at": values_pb2.KnownAt(revision=1)},
        {"now": on("2013-06-01")},
        {"query": "Where did Maya work in 2013?"},
    ]
    asked = [{"query": "Where does Maya work?"} | question for question in questions]
    before = [told(await memory.ask(**question)) for question in asked]
    assert all(google in dict(answer) for answer in before)

    assert await archive(memory, "sweep", "2020-01-01") == 2  # Google, and rum
    assert await archive(memory, "sweep", "2020-01-01") == 2  # a repeated call is told the same
    assert await archive(memory, "again", "2020-01-01") == 0
    lies = await lying(memory)
    assert google in lies[Collection.ARCHIVE] - lies[Collection.STATEMENTS]

    assert [told(await memory.ask(**question)) for question in asked] == before
    assert triples(await memory.ask("Where does Maya work?"))[0] == ACME
    index = memory.recall._recalling.facts_shelf.held(memory.world.scope)
    assert index is not None
    assert google not in index.statements


async def test_reads_say_that_it_is_archived_and_are_the_same_otherwise(memory: Memory) -> None:
    scope, google = memory.world.scope, await statement(memory, GOOGLE)
    before = await timeline(memory)
    assert await archive(memory, "sweep", "2020-01-01") == 2
    after = await timeline(memory)
    assert [one.archived for one in after] == [one.id == google for one in after]
    for one in after:
        one.archived = False
    assert after == before
    read = await memory.recall.read_statement(scope, pb.ReadStatementRequest(statement_id=google))
    assert read.statement.archived
    assert (await memory.recall.read_graph(scope, pb.ReadGraphRequest())).archived == 2
    decided = await memory.recall.list_decisions(scope, decisions_pb.ListDecisionsRequest(limit=50))
    assert ("archive", "retention") in [(one.action, one.why) for one in decided.decisions]


async def test_what_comes_back_is_as_it_was(memory: Memory) -> None:
    google = await statement(memory, GOOGLE)
    was, question = await rows(memory), "Where did Maya work before?"
    answer = told(await memory.ask(question))
    hot = told(await memory.ask("Where does Maya work?"))
    await archive(memory, "sweep", "2020-01-01")
    assert await restore(memory, "one", google) == 1
    assert await restore(memory, "one", google) == 1
    assert google in (await lying(memory))[Collection.STATEMENTS]
    assert await restore(memory, "all") == 1
    assert await restore(memory, "none") == 0
    assert await rows(memory) == was
    assert not (await lying(memory))[Collection.ARCHIVE]
    assert told(await memory.ask(question)) == answer
    assert told(await memory.ask("Where does Maya work?")) == hot
    with pytest.raises(StatementNotFound):
        await restore(memory, "unknown", "0f0f0f0f-0000-5000-8000-000000000000")


async def test_what_came_back_stays_as_long_as_what_has_just_ended(memory: Memory) -> None:
    await archive(memory, "sweep", "2020-01-01")
    await restore(memory, "all")
    memory.world.clock.at = on("2026-02-01")
    assert await archive(memory, "soon", "2025-12-31") == 0
    assert await archive(memory, "later", "2026-01-02") == 2


async def test_news_of_an_archived_statement_bring_it_back(memory: Memory) -> None:
    google = await statement(memory, GOOGLE)
    await archive(memory, "sweep", "2020-01-01")
    await memory.tell("five", "2026-01-02", GOOGLE)
    lies = await lying(memory)
    assert google in lies[Collection.STATEMENTS] - lies[Collection.ARCHIVE]
    assert GOOGLE in triples(await memory.ask("Where does Maya work?", now=on("2026-01-03")))
    assert not await found(memory)


async def test_rules_are_by_aspect_and_what_was_given_up_is_archived_too(memory: Memory) -> None:
    # Said on the same day of the same start, later: a correction, so that Google is not believed any more.
    await memory.tell("right", "2016-05-01", ("Maya", "works_at", "Initech"), start=on("2012-02-01"))
    assert await archive(memory, "other", "", event="2025-01-01") == 0
    assert await archive(memory, "early", "2016-04-01") == 1
    assert await archive(memory, "late", "2016-05-02") >= 1


async def test_a_writer_that_was_overtaken_leaves_rows_where_they_belong(memory: Memory) -> None:
    world = memory.world
    google = await statement(memory, GOOGLE)
    await archive(memory, "sweep", "2020-01-01")
    cold = await world.vectors.fetch(world.scope, Collection.ARCHIVE, [google])
    await world.vectors.upsert(world.scope, Collection.STATEMENTS, list(cold.values()))
    await world.vectors.delete(world.scope, Collection.ARCHIVE, [google])
    kinds = await found(memory)
    assert kinds == {Kind.ARCHIVED_WITHOUT_VECTOR, Kind.VECTOR_WITHOUT_STATEMENT}
    await verify(world, repair=True)
    assert not await found(memory)
    assert google in (await lying(memory))[Collection.ARCHIVE]


async def test_beliefs_are_the_same_at_every_revision(memory: Memory) -> None:
    current = await memory.world.memory.revisions.current(memory.world.scope)
    before = [await believed(memory, Revision(known)) for known in range(1, current + 1)]
    await archive(memory, "sweep", "2020-01-01")
    assert [await believed(memory, Revision(known)) for known in range(1, current + 1)] == before
    now = await memory.world.memory.revisions.current(memory.world.scope)
    assert (now, await believed(memory, now)) == (current + 1, before[-1])


async def test_a_copy_has_the_same_archive(memory: Memory, tmp_path: Path) -> None:
    google = await statement(memory, GOOGLE)
    await archive(memory, "sweep", "2020-01-01")
    await restore(memory, "one", google)
    world = memory.world
    point = Point(await world.memory.revisions.current(world.scope), world.clock.at)
    (tmp_path / "copy").mkdir()
    async with a_memory(tmp_path / "copy", ["works_at"]) as copy:
        for _ in range(2):  # as an import that was cut short is gone on with
            intake = Intake(stores_of(copy.world), world.scope, point)
            async for item in Export(stores_of(world), world.scope, point).items():
                await intake.take(item)
            await intake.flush()
        assert await lying(copy) == await lying(memory)
        assert await rows(copy) == await rows(memory)
        assert [one.archived for one in await timeline(copy)] == [False, False]
        assert await restore(copy, "all") == 1


async def timeline(memory: Memory) -> list[values_pb2.Statement]:
    request = pb.ReadTimelineRequest(subject="Maya", predicate="works_at", now=on("2026-01-01"))
    return [one.statement for one in (await memory.recall.read_timeline(memory.world.scope, request)).entries]


async def found(memory: Memory) -> set[Kind]:
    """Kinds of differences, but of passages: their rows are written by hand."""
    differences = (await verify(memory.world)).differences
    return {one.kind for one in differences if "passage" not in f"{one.kind} {one.what}"}
