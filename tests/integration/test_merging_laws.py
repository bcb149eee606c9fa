"""Laws of merging through the resolver: a split restores, and what was believed before never changes."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.domain.graph import Span
from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.paging import Page
from tests.builders import a_scope
from tests.examples import one_in
from tests.integration.resolving import World, a_world
from tests.integration.test_merging import believed, merge, reading, split, tell

_graphs = count()


@pytest.fixture(scope="module")
def space(graphd: str) -> Iterator[NebulaSettings]:
    """A space of the module's own, gone at the end."""
    made = NebulaSettings(addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=4, sessions=4)
    asyncio.run(bootstrap(made))
    yield made
    asyncio.run(drop(made))


@pytest.fixture
async def nebula_world(tmp_path: Path, space: NebulaSettings) -> AsyncIterator[World]:
    graph = await NebulaGraphStore.open(space)
    async with a_world(tmp_path, single=["lives_in"], graph=graph) as world:
        yield world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, single=["lives_in"]) as world:
        yield world


NAMES = ("Fay", "Faye", "Fae")
PLACES = ("Oslo", "Rome")
tellings = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(("lives_in", "likes")),
        st.sampled_from(PLACES),
        st.integers(2015, 2019),
    ),
    min_size=2,
    max_size=5,
    unique=True,
)
asked = st.lists(
    st.sampled_from([(one, other) for one in (*NAMES, *PLACES) for other in (*NAMES, *PLACES)]),
    min_size=1,
    max_size=3,
)


async def all_spans(world: World) -> list[Span]:
    ids = (await world.graph.scan(world.scope, Page(1000))).items
    return list((await world.graph.records(world.scope, ids)).spans)


async def check_that_a_split_restores(
    world: World, told: Sequence[tuple[str, str, str, int]], asked: Sequence[tuple[str, str]]
) -> None:
    """The spans and all that was believed; and what was believed before never changes."""
    made = replace(world, scope=a_scope(f"graph {next(_graphs)}"))
    there = {name for subject, _, target, _ in told for name in (subject, target)}
    for at, (subject, predicate, target, year) in enumerate(told):
        await tell(made, str(at), (subject, predicate, target), f"{year}-06-01", f"{year}-01-01")
    merges = [pair for pair in asked if pair[0] != pair[1] and set(pair) <= there]
    beliefs = {await made.memory.revisions.current(made.scope): await believed(made)}
    apart = await believed(made)
    for at, (into, name) in enumerate(merges):
        await merge(made, into, name, commit=f"merge {at}")
        beliefs[await made.memory.revisions.current(made.scope)] = await believed(made)
    at = 0
    while reads := await reading(made):
        await split(made, min(reads), commit=f"split {at}")
        beliefs[await made.memory.revisions.current(made.scope)] = await believed(made)
        at += 1
    assert await believed(made) == apart
    for revision, then in beliefs.items():
        assert await believed(made, revision) == then
    ids = [(span.id, span.statement) for span in await all_spans(made)]
    assert len(ids) == len(set(ids))


@pytest.mark.timeout(600)  # hundreds of durable writes: seconds, or minutes on a busy disk
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(40), deadline=None)
@given(told=tellings, asked=asked)
async def test_merge_then_split_restores(
    world: World, told: Sequence[tuple[str, str, str, int]], asked: Sequence[tuple[str, str]]
) -> None:
    await check_that_a_split_restores(world, told, asked)


@pytest.mark.timeout(600)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=3, deadline=None)
@given(told=tellings, asked=asked)
async def test_merge_then_split_restores_in_nebulagraph(
    nebula_world: World, told: Sequence[tuple[str, str, str, int]], asked: Sequence[tuple[str, str]]
) -> None:
    await check_that_a_split_restores(nebula_world, told, asked)
