"""The laws of time, for any records: the kernel against the oracle, and what must hold of its spans.

One world is held to every law, so that each gets all examples: to draw a world costs as much as to hold it to
all of them.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from services.domain.ids import RecordId, StatementId
from services.domain.kernel.rivals import Rivals
from services.domain.records import Claim, Denial, End
from services.domain.timeline import DerivedSpan, timeline
from tests.unit.domain.oracle import INF, Oracle, Said
from tests.unit.domain.worlds import World, relations, worlds

Record = Claim | End | Denial
Spans = Sequence[DerivedSpan]
Answers = Sequence[tuple[float, Collection[str], Collection[Said]]]
"""The oracle's: of each instant, what holds from there on, and what says so."""


def oracle_of(world: World) -> Oracle:
    return Oracle(world.claims(), world.ends(), world.denials(), world.contradicts)


def start(span: DerivedSpan) -> float:
    return -INF if span.valid_at is None else span.valid_at


def end(span: DerivedSpan) -> float:
    return INF if span.invalid_at is None else span.invalid_at


def by_id(world: World) -> dict[RecordId, Record]:
    return {record.id: record for record in world.records}


@given(worlds(), st.randoms(use_true_random=True))
def test_the_laws_of_time_hold(world: World, random: Random) -> None:
    spans, answers = world.spans(), oracle_of(world).holding()
    the_kernel_answers_as_the_oracle_at_every_instant(spans, answers)
    a_start_is_caused_by_the_earliest_attested_record_of_the_unbroken_period(spans, answers)
    every_border_has_a_cause_of_the_right_kind(world, spans)
    any_order_of_arrival_gives_the_same_spans(world, spans, random)
    spans_of_contradicting_statements_never_overlap(world, spans)


def the_kernel_answers_as_the_oracle_at_every_instant(spans: Spans, answers: Answers) -> None:
    for at, holds, _ in answers:
        found = {span.statement for span in spans if start(span) <= at < end(span)}
        assert found == set(holds), at
    instants = {at for at, _, _ in answers} | {INF}
    assert {border for span in spans for border in (start(span), end(span))} <= instants


def a_start_is_caused_by_the_earliest_attested_record_of_the_unbroken_period(
    spans: Spans, answers: Answers
) -> None:
    for span in spans:
        there: list[Said] = [
            said
            for at, _, held in answers
            if start(span) <= at < end(span)
            for said in held
            if said.of == span.statement
        ]
        first = min(there, key=lambda said: (said.attested, said.start, said.end, said.seen, said.record))
        assert span.started_by == first.record


def every_border_has_a_cause_of_the_right_kind(world: World, spans: Spans) -> None:
    records = by_id(world)
    for span in spans:
        started = records[span.started_by]
        assert started.statement == span.statement
        assert not isinstance(started, Denial)
        assert (span.ended_by is None) == (span.invalid_at is None)
        if span.ended_by is None:
            continue
        cause = records[span.ended_by]
        if cause.statement == span.statement:
            assert not isinstance(cause, Claim) or cause.end is not None
        else:
            assert world.contradicts(cause.statement, span.statement)
            successors = [
                other
                for other in spans
                if other.valid_at == span.invalid_at and other.statement == cause.statement
            ]
            assert [other.started_by for other in successors] == [span.ended_by]


def any_order_of_arrival_gives_the_same_spans(world: World, spans: Spans, random: Random) -> None:
    shuffled = random.sample(world.records, len(world.records))
    assert world.but(shuffled).spans() == spans


def spans_of_contradicting_statements_never_overlap(world: World, spans: Spans) -> None:
    for one, other in combinations(spans, 2):
        apart = end(one) <= start(other) or end(other) <= start(one)
        if one.statement == other.statement:
            assert apart
            assert start(other) != end(one), "adjacent pieces are one span"
        elif world.contradicts(one.statement, other.statement):
            assert apart
    assert all(start(span) < end(span) for span in spans)


@given(worlds(), relations())
def test_how_rivals_are_written_down_does_not_matter(world: World, rivals: Rivals) -> None:
    records = world.claims(), world.ends(), world.denials()
    assert timeline(*records, rivals) == timeline(*records, lambda one, other: rivals(one, other))


@given(worlds(most=5), worlds(most=5))
def test_statements_that_have_no_rival_do_not_sway_each_other(world: World, other: World) -> None:
    moved = [_moved(record) for record in other.records]
    apart = World((*world.records, *moved), frozenset())
    rivals = Rivals({record.statement: record.statement.startswith("at ") for record in apart.records})
    together = timeline(apart.claims(), apart.ends(), apart.denials(), rivals)
    alone = timeline(world.claims(), world.ends(), world.denials(), rivals)
    assert [span for span in together if not span.statement.startswith("at ")] == list(alone)


def _moved(record: Record) -> Record:
    """The same, said of another slot."""
    return replace(record, id=RecordId(f"at {record.id}"), statement=StatementId(f"at {record.statement}"))
