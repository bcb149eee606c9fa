"""The laws of time over the whole store: through the resolver, read back by the graph's port on both axes.

One example is one plan, and every law is held to it, so that each gets all examples: a story is told, and
what it changes is undone; the same words are told to another graph in another order.

| law of the design | here | of the kernel alone (tests/unit/domain) |
|---|---|---|
| any order of arrival gives the same spans | told_in_another_order | test_laws_of_time, test_laws_of_belief |
| replay changes nothing | repeats_write_nothing | test_laws_of_belief |
| believed spans of contradicting statements never overlap | nothing_overlaps, after each step | both |
| past beliefs never change as more arrives | past_beliefs_stand, of each revision | test_laws_of_belief |
| every span has a cause | every_span_has_a_cause | both |
| ingest then delete = never ingested | told_in_another_order: a slip is deleted | test_laws_of_belief |
| merge then split restores | merged_and_split | test_laws_of_belief |
| stored spans = derived spans | stored_is_derived | test_laws_of_belief |

Besides: what is believed is what the oracle says, after each step and of each revision; what a user takes or
judges, and takes back, was never said (taken_and_restored, judged_and_judged_back).
"""

from collections.abc import Callable, Coroutine, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from services.domain.beliefs import believed, derive
from services.domain.graph import Span
from services.domain.ids import EntityId, Revision
from services.domain.predicates import Cardinality
from services.domain.slots import Reading
from services.stores.graph.port import Records
from tests.conftest import EXAMPLES
from tests.integration.resolving import World
from tests.laws.account import Row
from tests.laws.stories import Judgement, Plan, Take, Unite, plans
from tests.laws.telling import Record, Story

LAX = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow]

Law = Callable[..., Coroutine[Any, Any, None]]


def laws() -> Law:
    """All laws as one test over the `world` that pytest gives; as many examples as laws without a store."""
    long = settings().max_examples >= EXAMPLES["long"]
    tried = given(plan=plans())(hold)
    # Every day the same stories: what new ones find is a matter of the long run, not of who comes by.
    tried = settings(
        derandomize=not long,
        database=None,
        deadline=None,
        suppress_health_check=LAX,
    )(tried)
    made: Law = pytest.mark.timeout(7200)(tried)  # thousands of durable writes
    return made


async def hold(world: World, plan: Plan) -> None:
    """Every law of one plan."""
    story = Checked(world)
    for at in range(0, len(plan.told), plan.together):
        await story.tell(plan.told[at : at + plan.together])
    told = await story.check()
    await told_in_another_order(world, plan, told)
    await judged_and_judged_back(story, plan.judged)
    for step in plan.changes:
        if await story.do(step):
            await story.check()
    await taken_and_restored(story, plan.taken)
    await merged_and_split(story, plan.union)
    await repeats_write_nothing(story, plan)
    found = await story.records()
    past_beliefs_stand(story, found)
    every_span_has_a_cause(found)
    await stored_is_derived(story, found)
    await both_axes_agree(story, found, plan.asked)


class Checked(Story):
    """A story, and what was believed in those revisions of it that were looked at."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.seen: dict[int, list[Row]] = {}

    async def check(self) -> list[Row]:
        """What is believed now is what the oracle says, and no rivals overlap."""
        held = self.seen[self.revision] = await self.held()
        self.as_the_oracle_says(self.revision, held)
        nothing_overlaps(self, held)
        return held

    def as_the_oracle_says(self, known: int, held: Sequence[Row]) -> None:
        expected = self.told.believed(known)
        assert expected is None or held == expected

    async def latest(self) -> list[Row]:
        """What is believed now, looked at already."""
        return self.seen[self.revision] if self.revision in self.seen else await self.check()


async def told_in_another_order(world: World, plan: Plan, told: Sequence[Row]) -> None:
    """And with a slip among it that is deleted; by itself, or all at once."""
    there = [plan.told[place] for place in plan.order if place < len(plan.told)]
    first, rest = there[: plan.first], there[plan.first :]
    other = Story(world)
    if first:
        await other.tell(first)
    if plan.slip is not None:
        (*_, slip) = await other.tell([*rest, plan.slip])
        await other.delete(slip)
    elif rest:
        await other.tell(rest)
    assert await other.held() == told


async def judged_and_judged_back(story: Checked, judgement: Judgement) -> None:
    """Where nobody judged before, a user who judges as it was without him leaves nothing of his verdict."""
    before = await story.latest()
    if await story.judge(judgement):
        await story.check()
        await story.judge_back(judgement)
        assert await story.check() == before


async def taken_and_restored(story: Checked, taken: Take) -> None:
    """What held is as before. The rest is so too, or, if it is claimed, holds then; or it is refused."""
    before = await story.latest()
    known = story.told.known()
    if not known:
        return
    fact = known[taken.of % len(known)]
    shown = story.told.competing(story.revision).shown[fact]
    held = _is_open(before, shown)
    if not await story.take(taken, fact):
        return
    changed = await story.check() != before
    if await story.restore(fact):
        after = await story.check()
        holds = any(each[0] == shown for each in after) or not story.told.claimed(fact)
        assert after == before or (holds and not (held and changed))
    else:
        assert not (held and changed)


def _is_open(held: Sequence[Row], fact: Any) -> bool:
    return any(each[0] == fact and each[2] is None for each in held)


async def merged_and_split(story: Checked, union: Unite) -> None:
    """Restores what was believed; in between the two are one thing."""
    before = await story.latest()
    pair = story.pair(union.pair)
    if pair is not None and await story.unite(union):
        await story.check()
        await story.part(pair[0].target)
        assert await story.check() == before


def nothing_overlaps(story: Story, rows: Sequence[Row]) -> None:
    among = story.told.competing(story.revision)
    for one, other in combinations(rows, 2):
        if one[0] == other[0] or among.rivals(one[0], other[0]):
            assert _before(one, other) or _before(other, one)


def _before(one: Row, other: Row) -> bool:
    return one[2] is not None and other[1] is not None and one[2] <= other[1]


def past_beliefs_stand(story: Checked, found: Records) -> None:
    """Of each revision, as it was when it was the last, and as the oracle says."""
    for known in range(1, story.revision + 1):
        held = story.as_held(believed(found.spans, Revision(known)))
        if known in story.seen:
            assert held == story.seen[known]
        else:
            story.as_the_oracle_says(known, held)


async def both_axes_agree(story: Checked, found: Records, asked: tuple[int, int]) -> None:
    """A revision and a day, asked for together; what a revision alone says was looked at as it came."""
    known, at = asked[0] % story.revision + 1, asked[1]
    held = story.as_held(believed(found.spans, Revision(known)))
    assert await story.held(known, at) == [
        each for each in held if (each[1] is None or each[1] <= at) and (each[2] is None or at < each[2])
    ]


def every_span_has_a_cause(found: Records) -> None:
    """One that counted when the span came to be believed."""
    every: list[Record] = [*found.claims, *found.ends, *found.denials]
    said_by = {one.id: one for one in every}
    for span in found.spans:
        assert _counts(said_by[span.started_by], span.known_from)
        assert (span.ended_by is None) == (span.invalid_at is None)
        assert span.ended_by is None or _counts(said_by[span.ended_by], span.known_from)


async def stored_is_derived(story: Story, found: Records) -> None:
    keys = {id: node.key for id, node in (await story.entities(found)).items()}

    def cardinality(id: EntityId) -> Cardinality:
        vocabulary = story.world.parts.vocabulary
        return vocabulary.cardinality(keys[id]) if keys.get(id) else Cardinality.MULTI

    derived = derive(found, cardinality, reading=Reading(story.merged, keys))
    assert {_said(span) for span in believed(found.spans, story.revision)} == {
        (s.statement, s.valid_at, s.invalid_at, s.started_by, s.ended_by, s.contested) for s in derived
    }


async def repeats_write_nothing(story: Story, plan: Plan) -> None:
    """A call that comes again; that nothing of it is left is seen by what follows."""
    await story.again(plan.asked[0])
    assert await story.world.memory.revisions.current(story.world.scope) == story.revision


def _counts(record: Record, known: Revision) -> bool:
    return record.recorded_at <= known and (record.revoked_at is None or known < record.revoked_at)


def _said(span: Span) -> tuple[object, ...]:
    return span.statement, span.valid_at, span.invalid_at, span.started_by, span.ended_by, span.contested
