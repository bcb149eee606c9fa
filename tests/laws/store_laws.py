"""The laws of time over the whole store: through the resolver, read back by the graph's port on both axes.

| law of the design | here (a story: a_story_as_the_oracle) | of the kernel alone (tests/unit/domain) |
|---|---|---|
| any order of arrival gives the same spans | any_order_of_arrival | test_laws_of_time, test_laws_of_belief |
| replay changes nothing | a story: `repeats_write_nothing` | test_laws_of_belief |
| believed spans of contradicting statements never overlap | a story: `nothing_overlaps` | both |
| past beliefs never change as more arrives | a story: `past_beliefs_stand` | test_laws_of_belief |
| every span has a cause | a story: `every_span_has_a_cause` | both |
| ingest then delete = never ingested | told_and_deleted | test_laws_of_belief |
| merge then split restores | merged_and_split | test_laws_of_belief |
| stored spans = derived spans | a story: `stored_is_derived` | test_laws_of_belief |
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.domain.beliefs import believed, derive
from services.domain.graph import Span
from services.domain.ids import EntityId, Revision
from services.domain.predicates import Cardinality
from services.domain.slots import Reading
from services.stores.graph.port import Records
from tests.conftest import EXAMPLES
from tests.integration.resolving import World
from tests.laws.stories import (
    DAYS,
    Judgement,
    Row,
    Step,
    Tell,
    Undo,
    Unite,
    judgements,
    stories,
    tellings,
    unions,
)
from tests.laws.telling import Record, Story

SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow]

Law = Callable[..., Coroutine[Any, Any, None]]


def law(holds: Law, share: int = 1, most: int = 1_000_000) -> Law:
    """The law as a test: hypothesis gives what it is about, pytest the `world`.

    Of the examples that a law has every day it gets one in `share`; where all are tried, all, up to `most`.
    """
    arguments = inspect.signature(holds).parameters
    strategies = {name: strategy for name, strategy in _GIVEN.items() if name in arguments}
    everything = settings().max_examples
    examples = min(most, everything if everything >= EXAMPLES["long"] else max(5, everything // share))
    tried = given(**strategies)(holds)
    tried = settings(max_examples=examples, deadline=None, suppress_health_check=SLOW)(tried)
    made: Law = pytest.mark.timeout(7200)(tried)  # thousands of durable writes
    return made


async def a_story_as_the_oracle(world: World, steps: list[Step], at: int, number: int) -> None:
    """After each step, and of each revision ever after, what is believed is what the oracle says."""
    story = Story(world)
    seen: dict[int, list[Row]] = {0: []}
    for step in steps:
        await story.do(step)
        rows, expected = await story.rows(), story.told.believed(story.revision)
        assert expected is None or rows == expected
        nothing_overlaps(story, rows)
        seen[story.revision] = rows
    await past_beliefs_stand(story, seen, at)
    every_span_has_a_cause(await story.records())
    await stored_is_derived(story)
    await repeats_write_nothing(story, number)
    await past_beliefs_stand(story, seen, at)


def nothing_overlaps(story: Story, rows: Sequence[Row]) -> None:
    among = story.told.competing(story.revision)
    for one, other in combinations(rows, 2):
        if one[0] == other[0] or among.rivals(one[0], other[0]):
            assert _before(one, other) or _before(other, one)


def _before(one: Row, other: Row) -> bool:
    return one[2] is not None and other[1] is not None and one[2] <= other[1]


async def past_beliefs_stand(story: Story, seen: Mapping[int, list[Row]], at: int) -> None:
    """Both axes: what was believed in each revision, of all time and of one day."""
    for known, rows in seen.items():
        assert await story.rows(known) == rows
        of_the_day = [
            row for row in rows if (row[1] is None or row[1] <= at) and (row[2] is None or at < row[2])
        ]
        assert await story.rows(known, at) == of_the_day


def every_span_has_a_cause(found: Records) -> None:
    """One that counted when the span came to be believed."""
    every: list[Record] = [*found.claims, *found.ends, *found.denials]
    said_by = {one.id: one for one in every}
    for span in found.spans:
        assert _counts(said_by[span.started_by], span.known_from)
        assert (span.ended_by is None) == (span.invalid_at is None)
        assert span.ended_by is None or _counts(said_by[span.ended_by], span.known_from)


async def stored_is_derived(story: Story) -> None:
    found = await story.records()
    keys = {id: node.key for id, node in (await story.entities()).items()}

    def cardinality(id: EntityId) -> Cardinality:
        vocabulary = story.world.parts.vocabulary
        return vocabulary.cardinality(keys[id]) if keys.get(id) else Cardinality.MULTI

    derived = derive(found, cardinality, reading=Reading(story.merged, keys))
    assert {_said(span) for span in believed(found.spans, story.revision)} == {
        (s.statement, s.valid_at, s.invalid_at, s.started_by, s.ended_by, s.contested) for s in derived
    }


async def repeats_write_nothing(story: Story, number: int) -> None:
    """Neither a call that comes again nor a revision in which nothing is said."""
    before = await story.records()
    await story.again(number)
    assert await story.world.memory.revisions.current(story.world.scope) == story.revision
    await story.derive_again()
    assert await story.records() == before


async def any_order_of_arrival(world: World, told: list[Tell], data: st.DataObject) -> None:
    other = data.draw(st.permutations(told), label="in another order")
    one_way, another_way = await Story(world).run(told), await Story(world).run(other)
    assert await one_way.rows() == await another_way.rows()


async def told_and_deleted(world: World, told: list[Tell], data: st.DataObject) -> None:
    """Might as well never have been told, as believed now; what was believed before stands."""
    at = data.draw(st.integers(0, len(told) - 1), label="deleted")
    story = await Story(world).run(told)
    before, known = await story.rows(), story.revision
    await story.delete(at)
    without = await Story(world).run([*told[:at], *told[at + 1 :]])
    assert await story.rows() == await without.rows()
    assert await story.rows(known) == before


async def merged_and_split(world: World, steps: list[Step], union: Unite) -> None:
    """Restores what was believed; in between the two are one thing."""
    story = await Story(world).run(steps)
    before, known = await story.rows(), story.revision
    if await story.unite(union.entity, union.into):
        expected = story.told.believed(story.revision)
        assert expected is None or await story.rows() == expected
        await story.part(union.entity)
    assert await story.rows() == before
    assert await story.rows(known) == before


async def judged_and_undone(world: World, steps: list[Step], judgement: Judgement) -> None:
    """A verdict that is taken back leaves nothing of it."""
    story = await Story(world).run(steps)
    before, undoable = await story.rows(), story.undoable()
    await story.do(judgement)
    if len(story.undoable()) > len(undoable):
        await story.do(Undo(len(undoable)))
    assert await story.rows() == before


def _counts(record: Record, known: Revision) -> bool:
    return record.recorded_at <= known and (record.revoked_at is None or known < record.revoked_at)


def _said(span: Span) -> tuple[object, ...]:
    return span.statement, span.valid_at, span.invalid_at, span.started_by, span.ended_by, span.contested


_GIVEN: dict[str, st.SearchStrategy[Any]] = {
    "steps": stories(),
    "told": st.lists(tellings(), min_size=1, max_size=5),
    "judgement": judgements(),
    "union": unions(),
    "at": st.sampled_from(DAYS),
    "number": st.integers(0, 3),
    "data": st.data(),
}
