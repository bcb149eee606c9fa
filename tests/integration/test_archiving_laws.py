"""Law of the archive: with it every answer is as it would be without, and what came back never was there.

A history is told to two graphs of equal ids. One archives and brings back between the tellings; at the end
all of it comes back.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import values_pb2
from services.domain.ids import Revision
from services.recall.behind import Behind
from services.recall.parts import Parts
from services.recall.service import Recall
from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.vectors.port import Collection
from tests.builders import a_scope, on
from tests.examples import one_in
from tests.integration.archiving import archive, believed, lying, restore, rows, told
from tests.integration.recalling import KEEPING, Memory
from tests.integration.resolving import World, a_world
from tests.integration.test_resolver import CLAIM, END
from tests.integration.upkeeping import verify

DENIAL = values_pb2.FACT_KIND_DENIAL
LAX = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow]
_graphs = count()
YEARS = st.integers(2010, 2019)


@dataclass(frozen=True)
class Step:
    """What is told of Maya in a year, and what is done then: `archives` what ended by a year, `restores`."""

    predicate: str
    target: str
    kind: values_pb2.FactKind.ValueType
    said: int
    start: int | None
    archives: int | None
    restores: bool


steps = st.builds(
    Step,
    predicate=st.sampled_from(["lives_in", "likes"]),
    target=st.sampled_from(["Berlin", "Hall", "tea"]),
    kind=st.sampled_from([CLAIM, CLAIM, CLAIM, END, DENIAL]),
    said=YEARS,
    start=st.none() | YEARS,
    archives=st.none() | st.integers(2012, 2030),
    restores=st.booleans(),
)


def law(share: int) -> Callable[..., Any]:
    tried = given(history=st.lists(steps, min_size=1, max_size=5))(hold)
    return settings(max_examples=one_in(share), deadline=None, suppress_health_check=LAX)(tried)


async def hold(world: World, history: list[Step]) -> None:
    number = next(_graphs)
    plain = a_scope(f"plain {number}")
    memories = [memory_of(replace(world, scope=plain))]
    memories += [memory_of(replace(world, scope=replace(a_scope(f"archived {number}"), origin=plain.key)))]
    known: list[tuple[Revision, Revision]] = []
    for at, step in enumerate(history):
        for memory in memories:
            await tell(memory, at, step)
        one, other = memories
        known.append((await current(one), await current(other)))
        if step.archives is not None:
            await archive(other, f"archive {at}", f"{step.archives}-01-01")
        if step.restores:
            await restore(other, f"restore {at}")
        await answers_are_equal(one, other, known)
        if at % 2:
            for memory in memories:
                await memory.restart()
    assert not [one for one in (await verify(other.world)).differences if "statement" in one.kind]
    await restore(other, "all")
    assert not (await lying(other))[Collection.ARCHIVE]
    numbers = {there: here for here, there in known}
    found = {id: (*row[:2], numbers[row[2]], *row[3:]) for id, row in (await rows(other)).items()}
    assert found == await rows(one)
    await answers_are_equal(one, other, known)
    hot = [told(await memory.ask("Where does Maya live?")) for memory in memories]
    assert hot[0] == hot[1]
    for memory in memories:
        await memory.recall.close()


def memory_of(world: World) -> Memory:
    parts, memory = world.parts, world.memory
    recall = Parts(
        graph=world.graph,
        text=memory.text,
        voice=memory.voice,
        readings=memory.readings,
        archive=memory.archive,
        revisions=memory.revisions,
        decisions=memory.decisions,
        snapshots=memory.snapshots,
        summaries=memory.summaries,
        vectors=world.vectors,
        embedder=parts.embedder,
        vocabulary=parts.vocabulary,
        options=KEEPING,
        behind=Behind(later_seconds=0),
    )
    return Memory(world, Recall(recall), parts.embedder, recall)


async def tell(memory: Memory, at: int, step: Step) -> None:
    times: dict[str, Any] = {"start": on(f"{step.start}-03-01")} if step.start and step.kind == CLAIM else {}
    if step.kind == END:
        times = {"end": on(f"{step.said}-03-01")}
    triple = ("Maya", step.predicate, step.target)
    await memory.tell(f"told-{at}", f"{step.said}-06-01", triple, kind=step.kind, **times)


async def current(memory: Memory) -> Revision:
    return await memory.world.memory.revisions.current(memory.world.scope)


async def answers_are_equal(one: Memory, other: Memory, known: list[tuple[Revision, Revision]]) -> None:
    """Beliefs at every revision, and recall on both axes of time."""
    for here, there in known:
        ours = {id: [in_words(span) for span in spans] for id, spans in (await believed(one, here)).items()}
        theirs = await believed(other, there)
        assert {id: [in_words(span) for span in spans] for id, spans in theirs.items()} == ours
    (here, there), day = known[len(known) // 2], on("2014-01-01")
    within = {"range_start": day, "range_end": on("2016-01-01")}
    questions: list[dict[str, Any]] = [{"as_of": day}, {"include_ended": True}, within]
    for asked in questions:
        assert told(await one.ask("Maya", **asked)) == told(await other.ask("Maya", **asked))
    then = [values_pb2.KnownAt(revision=each) for each in (here, there)]
    for asked in ({}, questions[0]):
        answers = [
            told(await memory.ask("Maya", known_at=at, **asked))
            for memory, at in zip((one, other), then, strict=True)
        ]
        assert answers[0] == answers[1]


def in_words(span: Any) -> tuple[Any, ...]:
    return span.valid_at, span.invalid_at, span.known_to is None, span.contested, span.started_by is None


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, ["lives_in"]) as world:
        yield world


HISTORY = [
    Step("lives_in", "Berlin", CLAIM, 2011, None, None, False),
    Step("lives_in", "Hall", CLAIM, 2014, None, 2020, False),
    Step("lives_in", "Berlin", CLAIM, 2016, None, 2020, False),
]
"""A, B, A: what came back is archived once more."""


async def test_an_archive_changes_no_answer_of_one_history(world: World) -> None:
    await hold(world, HISTORY)


test_an_archive_changes_no_answer = pytest.mark.slow(law(8))


class TestInNebula:
    """The same over the other graph store: the archive knows no engine."""

    @pytest.fixture
    async def world(self, tmp_path: Path, graphd: str) -> AsyncIterator[World]:
        space = f"test_{uuid4().hex[:12]}"
        nebula = NebulaSettings(addresses=graphd, space=space, partitions=2, sessions=2)
        await bootstrap(nebula)
        async with a_world(tmp_path, ["lives_in"], graph=NebulaGraphStore(nebula)) as world:
            yield world
        await drop(nebula)

    @pytest.mark.slow
    async def test_an_archive_changes_no_answer_of_one_history(self, world: World) -> None:
        await hold(world, HISTORY)
