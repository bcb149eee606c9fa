"""Many writers of a graph at once, each with stores of its own as processes have: nothing twice or lost.

No lock is shared between them: what keeps a graph serial is the revision log's compare-and-set.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.records import VerdictKind
from services.llm.tasks import JudgeStatements, PairVerdict
from services.stores.graph.port import AsOf, StatementFilter
from services.stores.paging import Page
from tests.builders import on
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM, claim, fact, resolve, voice

PAGE = Page(1000)
NAMES = ("Maya Kapoor", "maya  kapoor", "MAYA KAPOOR", "Ｍaya Kapoor")
"""One name, as writers write it."""


@pytest.fixture(
    params=[
        pytest.param("sqlite", marks=pytest.mark.slow),  # there writers wait in a queue: the lesser trial
        pytest.param("postgres", marks=pytest.mark.postgres),
    ]
)
async def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[World]]:
    """Two processes over one database."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(a_world(tmp_path, engine_url=url)) for _ in range(2)]


async def test_fifty_writers_of_one_new_entity_leave_one_node(worlds: list[World]) -> None:
    await asyncio.gather(
        *(
            claim(worlds[n % 2], f"{n}", (NAMES[n % len(NAMES)], "knows", f"Friend {n}"), "2024-01-01")
            for n in range(50)
        )
    )
    for world in worlds:
        current = await world.memory.revisions.current(world.scope)
        found = await world.graph.find_entities(world.scope, ["maya kapoor"], current)
        assert current == 50
        assert len(found["maya kapoor"]) == 1
        assert {name for name, _, _ in await world.timeline("maya kapoor", "knows")} == {
            f"Friend {n}" for n in range(50)
        }


@pytest.mark.slow
async def test_fifty_writers_of_one_fact_leave_one_statement_with_fifty_claims(worlds: list[World]) -> None:
    await asyncio.gather(
        *(claim(worlds[n % 2], f"{n}", (NAMES[n % 4], "likes", "tea"), "2024-01-01") for n in range(50))
    )
    ((view, _),) = await worlds[0].spans("maya kapoor", "likes")
    records = await worlds[1].graph.records(worlds[1].scope, [view.statement.id])
    assert len(records.claims) == 50
    assert sorted(claim.recorded_at for claim in records.claims) == list(range(1, 51))


async def test_eight_episodes_of_one_graph_at_once_lose_nothing(worlds: list[World]) -> None:
    """New and known things, one slot that all write to, and the voice; each asks what others just wrote."""
    told = "We spoke."

    async def one(number: int) -> int:
        world = worlds[number % 2]
        episode = await world.episode(f"{number}", on(f"2024-01-{number + 1:02}"), [told])
        passage = f"passage-{number}-0"
        answer = await resolve(
            world,
            episode,
            fact(("Maya", "lives_in", f"Town {number}"), passage, told),
            fact(("Maya", "knows", f"Friend {number}"), passage, told),
            fact((f"Friend {number}", "knows", f"Friend {(number + 1) % 8}"), passage, told),
            voice(f"Maya prefers train number {number}.", passage),
        )
        return answer.revision

    revisions = await asyncio.gather(*(one(number) for number in range(8)))
    assert sorted(revisions) == list(range(1, 9))
    world = worlds[0]
    assert await world.timeline("maya", "lives_in") == [
        (f"Town {n}", on(f"2024-01-{n + 1:02}"), None if n == 7 else on(f"2024-01-{n + 2:02}"))
        for n in range(8)
    ]
    assert {name for name, _, _ in await world.timeline("maya", "knows")} == {f"Friend {n}" for n in range(8)}
    where, at = StatementFilter(include_ended=True), AsOf(await world.memory.revisions.current(world.scope))
    listed = await world.graph.list_statements(world.scope, where, at, PAGE)
    assert len(listed.items) == 24
    names = [view.subject.name for view in listed.items] + ["Maya"]
    assert len({view.subject.id for view in listed.items}) == len(set(names))
    aspects = await world.memory.voice.list_aspects(world.scope, [], at.known_at, PAGE)
    assert len(aspects.items) == 8


async def test_two_paraphrases_in_one_episode_leave_one_statement(worlds: list[World]) -> None:
    """Whichever id sorts first, and both quotes are kept with it."""
    world = worlds[0]
    lines = ["I can't start a day without tea.", "Tea is what I live on."]

    def same(task: JudgeStatements) -> list[PairVerdict]:
        return [PairVerdict(pair.new, pair.candidate, VerdictKind.DUPLICATE) for pair in task.pairs]

    world.engine.judge = same
    episode = await world.episode("a", on("2024-01-01"), lines)
    await resolve(
        world,
        episode,
        fact(("Ada", "craves", "tea"), "passage-a-0", lines[0]),
        fact(("Ada", "lives_on", "tea"), "passage-a-1", lines[1]),
    )
    at = AsOf(await world.memory.revisions.current(world.scope))
    listed = await world.graph.list_statements(world.scope, StatementFilter(include_ended=True), at, PAGE)
    (view,) = listed.items
    (span,) = view.spans
    assert (span.valid_at, span.invalid_at) == (on("2024-01-01"), None)
    own = await world.graph.records(world.scope, [view.statement.id])
    (verdict,) = own.verdicts
    both = await world.graph.records(world.scope, [verdict.left, verdict.right])
    assert {one.source.quote for one in both.claims} == set(lines)


async def test_a_graph_is_serial_by_its_log_alone(worlds: list[World]) -> None:
    """Eight writers that share no lock: each revision is built on the one before, and none is skipped."""
    resolvers = [world.another() for world in worlds for _ in range(4)]

    async def one(number: int) -> None:
        world = worlds[number // 4]
        episode = await world.episode(f"{number}", on("2024-01-01"))
        assertion = said(CLAIM, ("Fay", "likes", f"dish {number}"), on("2024-01-01"), episode)
        request = pb.AssertRequest(commit_id=f"{number}", assertions=[assertion])
        await resolvers[number].assert_(world.scope, request)  # noqa: PT009 - not unittest's

    await asyncio.gather(*(one(number) for number in range(8)))
    world = worlds[1]
    records = await world.graph.records(
        world.scope, [view.statement.id for view, _ in await world.spans("fay", "likes")]
    )
    assert sorted(claim.recorded_at for claim in records.claims) == list(range(1, 9))
    assert await world.memory.revisions.pending(world.scope) is None
