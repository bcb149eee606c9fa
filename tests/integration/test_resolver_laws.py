"""Laws of the whole resolver over real stores: what was deleted might as well never have been said."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.ids import EpisodeId
from services.domain.instants import Instant
from services.domain.records import VerdictKind
from services.llm.tasks import JudgeStatements, PairVerdict
from tests.builders import a_scope, on
from tests.integration.resolving import Row, World, a_world
from tests.integration.test_resolver import END, fact, resolve

PREDICATES = ("likes", "lives_in")
"""MULTI, where the engine judges, and SINGLE."""
_graphs = count()
KINDS = (VerdictKind.CONTRADICTS, VerdictKind.COMPATIBLE, None)


@dataclass(frozen=True)
class Telling:
    """What one episode says, in the year in which it was said."""

    predicate: str
    target: str
    said: int
    start: int | None
    ends: bool


tellings = st.builds(
    Telling,
    predicate=st.sampled_from(PREDICATES),
    target=st.sampled_from(("tea", "rum", "jam")),
    said=st.integers(2015, 2019),
    start=st.none() | st.integers(2010, 2015),
    ends=st.booleans(),
)


SAME = {"likes": {"tea", "rum"}, "lives in": {"rum", "jam"}}
"""Objects that are one thing under two names: a judge that means it judges either alike."""


def judged(task: JudgeStatements) -> list[PairVerdict]:
    """Of the same two things always the same, whichever is new, and by whatever name."""
    verdicts: list[PairVerdict] = []
    for pair in task.pairs:
        one, other = _meant(task.new[pair.new].fact), _meant(task.candidates[pair.candidate].fact)
        kind = VerdictKind.DUPLICATE if one == other else _between(one, other)
        if kind is not None:
            verdicts.append(PairVerdict(pair.new, pair.candidate, kind))
    return verdicts


def _meant(fact: str) -> tuple[str, str]:
    """The predicate and the thing of `Fay lives in tea.`"""
    _, *words, target = fact.rstrip(".").split()
    predicate = " ".join(words)
    return predicate, min(SAME[predicate]) if target in SAME[predicate] else target


def _between(one: tuple[str, str], other: tuple[str, str]) -> VerdictKind | None:
    both = "|".join(sorted((*one, *other)))
    return KINDS[hashlib.sha256(both.encode()).digest()[0] % len(KINDS)]


async def tell(world: World, name: str, telling: Telling) -> None:
    episode = await world.episode(name, on(f"{telling.said}-06-01"), ["as it was said"])
    one = fact(("Fay", telling.predicate, telling.target), f"passage-{name}-0", "as it was said")
    if telling.ends:
        one.kind = END
        one.end.at = on(f"{telling.said}-03-01")
    elif telling.start is not None:
        one.start.at = on(f"{telling.start}-01-01")
    await resolve(world, episode, one)


async def believed(world: World) -> dict[str, list[Row]]:
    return {predicate: await world.timeline("Fay", predicate) for predicate in PREDICATES}


async def story(world: World, said: Sequence[Telling], deleted: int | None) -> dict[str, list[Row]]:
    """What a new graph believes after all was told, and one of it, if any, deleted."""
    told = replace(world, scope=a_scope(f"graph {next(_graphs)}"))
    # What a model was not asked while the text stood is not asked once it is gone: the law is of the rules.
    told.engine.judge = lambda _: []
    for at, telling in enumerate(said):
        await tell(told, str(at), telling)
    if deleted is not None:
        id = EpisodeId(f"episode-{deleted}")
        await told.memory.text.delete_episode(told.scope, id, Instant(1))
        request = pb.RevokeRequest(commit_id="delete", episode_id=id, actor="user")
        await told.resolver.revoke(told.scope, request)
    return await believed(told)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


@pytest.mark.timeout(600)  # hundreds of durable writes: seconds, or minutes on a busy disk
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(said=st.lists(tellings, min_size=1, max_size=5), data=st.data())
async def test_what_is_told_and_deleted_might_as_well_not_have_been_told(
    world: World, said: list[Telling], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(said) - 1), label="deleted")
    rest = [*said[:at], *said[at + 1 :]]
    assert await story(world, said, at) == await story(world, rest, None)
