"""Verdicts see entities as they read: facts of one person under two names can contradict, and repeat."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_entities_pb2 as entities_pb
from services.domain.graph import Entity
from services.domain.records import VerdictKind
from services.llm import tasks
from tests.builders import on
from tests.integration.resolving import World, a_world
from tests.integration.test_resolver import fact, resolve

FULL, SHORT = "Maya Kapoor", "Maya's alter ego"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        world.engine.judge = contradicting
        yield world


def contradicting(task: tasks.JudgeStatements) -> Sequence[tasks.PairVerdict]:
    return [tasks.PairVerdict(one.new, one.candidate, VerdictKind.CONTRADICTS, "says") for one in task.pairs]


async def told(world: World, name: str, triple: tuple[str, str, str], day: str) -> None:
    episode = await world.episode(name, on(day), [" ".join(triple)])
    await resolve(world, episode, fact(triple, f"passage-{name}-0", " ".join(triple)))


async def named(world: World, name: str) -> Entity:
    known = await world.memory.revisions.current(world.scope)
    (found,) = (await world.graph.find_entities(world.scope, [name.casefold()], known))[name.casefold()]
    return found


async def merge(world: World) -> None:
    into, entity = await named(world, FULL), await named(world, SHORT)
    request = entities_pb.MergeRequest(
        commit_id="merge", into_id=into.id, entity_ids=[entity.id], actor="key:k"
    )
    await world.resolver.merge(world.scope, request)


async def test_what_is_said_under_another_name_can_contradict(world: World) -> None:
    await told(world, "a", (FULL, "likes", "tea"), "2024-01-01")
    await told(world, "b", (SHORT, "knows", "Bob"), "2024-02-01")
    await merge(world)
    await told(world, "c", (SHORT, "hates", "tea"), "2025-01-01")
    assert await world.timeline(FULL, "likes") == [("tea", on("2024-01-01"), on("2025-01-01"))]


async def test_of_two_that_are_not_one_nothing_contradicts(world: World) -> None:
    await told(world, "a", (FULL, "likes", "tea"), "2024-01-01")
    await told(world, "c", (SHORT, "hates", "tea"), "2025-01-01")
    assert await world.timeline(FULL, "likes") == [("tea", on("2024-01-01"), None)]


async def test_the_same_under_another_name_is_no_question(world: World) -> None:
    await told(world, "a", (FULL, "likes", "tea"), "2024-01-01")
    await told(world, "b", (SHORT, "knows", "Bob"), "2024-02-01")
    await merge(world)
    world.engine.asked.clear()
    await told(world, "c", (SHORT, "likes", "tea"), "2025-01-01")
    questions = [task for task in world.engine.asked if isinstance(task, tasks.JudgeStatements)]
    assert f"{FULL} likes tea." not in [known.fact for task in questions for known in task.candidates]
    assert await world.timeline(FULL, "likes") == [("tea", on("2024-01-01"), None)]
