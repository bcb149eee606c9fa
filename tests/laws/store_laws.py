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
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.beliefs import believed, derive
from services.domain.graph import Entity, Span
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, StatementId, derive_id
from services.domain.instants import Instant
from services.domain.predicates import Cardinality
from services.domain.records import Claim as ClaimRecord
from services.domain.records import Denial as DenialRecord
from services.domain.records import End as EndRecord
from services.domain.records import Judge, Verdict
from services.domain.slots import Reading
from services.resolver.change import Draft
from services.resolver.index import Index
from services.resolver.publish import Publisher
from services.stores.graph.port import AsOf, Records, Revocation, StatementFilter
from services.stores.paging import Page
from tests.builders import a_scope, on
from tests.conftest import EXAMPLES
from tests.integration.resolving import World, said
from tests.laws.competing import Judged
from tests.laws.oracle import Claim, Denial, End
from tests.laws.stories import (
    DAYS,
    Delete,
    Judgement,
    Kept,
    Row,
    Said,
    Step,
    Tell,
    Telling,
    Undo,
    fact_of,
    in_order,
    judgements,
    stories,
    tellings,
)

Record = ClaimRecord | EndRecord | DenialRecord
_FIRST = on("2024-01-01")
_DAY = 24 * 3_600_000_000
_ALL = Page(1000)
_graphs = count()
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow]


def instant(day: int) -> Instant:
    return Instant(_FIRST + day * _DAY)


def day(at: Instant | None) -> int | None:
    return None if at is None else (at - _FIRST) // _DAY


class Story:
    """A new graph in which steps are done one by one, and the oracle's account of it beside."""

    def __init__(self, world: World) -> None:
        self.world = replace(world, scope=a_scope(f"story {next(_graphs)}"))
        self.told = Telling()
        self.revision = Revision(0)
        parts = world.parts
        index = Index(world.graph, world.memory.voice, parts.vectors, parts.embedder)
        self._publisher = Publisher(parts.stores, index, parts.vocabulary, parts.now)
        self.merged: dict[EntityId, EntityId] = {}
        self._steps = 0
        self._episodes: dict[int, tuple[str, Said]] = {}

    async def run(self, steps: Iterable[Step]) -> "Story":
        for step in steps:
            await self.do(step)
        return self

    async def do(self, step: Step) -> None:
        """One revision, or none where there is nothing that the step could be about."""
        self._steps += 1
        match step:
            case Tell():
                await self._tell(f"{self._steps}", step.said)
            case Delete():
                if left := self.told.left():
                    await self.delete(left[step.at % len(left)])
            case Judgement():
                await self._judge(step)
            case Undo():
                await self._undo(step.at)

    async def again(self, position: int) -> None:
        """The same telling once more, as a client that heard no answer sends it."""
        if position in self._episodes:
            await self._assert(*self._episodes[position])

    async def _tell(self, name: str, what: Said) -> None:
        number = len(self._episodes)
        self._episodes[number] = (name, what)
        answer = await self._assert(name, what)
        self.told.ids[fact_of(what.of)] = answer.statement_ids[0]
        self._published(answer.revision)
        self.told.kept.append(Kept(what, number, self.revision))

    async def _assert(self, name: str, what: Said) -> pb.AssertResponse:
        triple = ("Mara", *fact_of(what.of))
        times: dict[str, int | None]
        match what:
            case Claim():
                kind, times = values.FACT_KIND_CLAIM, {"start": what.start, "end": what.end}
                times["seen"] = what.seen
            case End():
                kind, times = values.FACT_KIND_END, {"end": what.at}
            case Denial():
                kind, times = values.FACT_KIND_DENIAL, {"start": what.start, "end": what.until}
        attested = instant(what.attested)
        episode = await self.world.episode(name, attested)
        dated = {key: None if at is None else instant(at) for key, at in times.items()}
        return await self.world.tell(name, said(kind, triple, attested, episode, **dated))

    async def delete(self, number: int) -> None:
        """As the gateway does: the text, then what it said. A verdict nobody gave goes with all support."""
        id = EpisodeId(f"episode-{self._episodes[number][0]}")
        await self.world.memory.text.delete_episode(self.world.scope, id, Instant(1))
        asked = pb.RevokeRequest(commit_id=f"delete {number}", episode_id=id, actor="user")
        answer = await self.world.resolver.revoke(self.world.scope, asked)
        self._published(answer.revision)
        gone = [kept for kept in self.told.kept if kept.episode == number and kept.until is None]
        for kept in gone:
            kept.until = self.revision
        for kept in self.told.kept:
            if kept.until is None and isinstance(kept.what, Judged) and kept.what.judge is not Judge.USER:
                lost = [fact for fact in kept.what[:2] if not self.told.supported(fact)]
                if any(one.supports(fact) for one in gone for fact in lost):
                    kept.until = self.revision

    async def _judge(self, step: Judgement) -> None:
        what = step.judged
        if not (self.told.supported(what.left) and self.told.supported(what.right)):
            return
        left, right = sorted(StatementId(self.told.ids[fact]) for fact in (what.left, what.right))
        id = RecordId(derive_id(self.world.scope, "verdict", self._steps))
        draft = Draft(Revision(0))
        draft.verdicts[id] = Verdict(id, left, right, what.kind, what.judge, instant(what.attested))
        await self._publish(draft)
        self.told.kept.append(Kept(what, None, self.revision, verdict=id))

    async def _undo(self, at: int) -> None:
        if not (undoable := self.undoable()):
            return
        kept = undoable[at % len(undoable)]
        record = await self._record(kept)
        await self._publish(Draft(Revision(0), revocations={record.record: record}))
        kept.until = self.revision

    def undoable(self) -> list[Kept]:
        return [kept for kept in self.told.kept if kept.until is None and not isinstance(kept.what, Claim)]

    async def derive_again(self) -> None:
        """A revision that says nothing."""
        self._steps += 1
        await self._publish(Draft(Revision(0), again={StatementId(id) for id in self.told.ids.values()}))

    async def _record(self, kept: Kept) -> Revocation:
        if isinstance(kept.what, (Claim, End, Denial)):
            episode = EpisodeId(f"episode-{self._episodes[kept.episode or 0][0]}")
            records = await self.world.graph.of_episode(self.world.scope, episode)
            told: list[Record] = [*records.ends, *records.denials]
            return Revocation(told[0].id, told[0].statement)
        left = min(self.told.ids[fact] for fact in (kept.what.left, kept.what.right))
        return Revocation(RecordId(kept.verdict), StatementId(left))

    async def _publish(self, made: Draft) -> None:
        async def build(_known: Revision, revision: Revision) -> Draft:
            verdicts = {id: replace(one, recorded_at=revision) for id, one in made.verdicts.items()}
            return replace(made, revision=revision, verdicts=verdicts)

        published = await self._publisher.publish(self.world.scope, f"step {self._steps}", build)
        self._published(published.revision)

    def _published(self, revision: int) -> None:
        self.told.reads[revision] = self.told.reads[self.revision]
        self.revision = Revision(revision)

    async def rows(self, known: int | None = None, at: int | None = None) -> list[Row]:
        """What the store says was believed in a revision, also of one day."""
        axes = AsOf(Revision(self.revision if known is None else known), None if at is None else instant(at))
        where = StatementFilter(include_ended=True)
        listed = await self.world.graph.list_statements(self.world.scope, where, axes, _ALL)
        facts = {id: fact for fact, id in self.told.ids.items()}
        return in_order(
            [
                (facts[view.statement.id], day(span.valid_at), day(span.invalid_at))
                for view in listed.items
                for span in view.spans
            ]
        )

    async def records(self) -> Records:
        ids = [StatementId(id) for id in self.told.ids.values()]
        return await self.world.graph.records(self.world.scope, ids)

    async def entities(self) -> dict[EntityId, Entity]:
        nodes = {
            node
            for one in (await self.records()).statements
            for node in (one.predicate, one.object)
            if isinstance(node, str)
        }
        found = await self.world.graph.entities(self.world.scope, sorted(nodes))
        return {entity.id: entity for entity in found}


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
    "at": st.sampled_from(DAYS),
    "number": st.integers(0, 3),
    "data": st.data(),
}
