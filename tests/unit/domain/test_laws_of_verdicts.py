"""Whatever verdicts say, circles of them included, nothing that is claimed is lost without a successor."""

from collections.abc import Sequence
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from services.domain.beliefs import SlotRecords, derive
from services.domain.graph import Statement
from services.domain.ids import RecordId
from services.domain.instants import Interval
from services.domain.predicates import Cardinality
from services.domain.records import Claim, Judge, Source, Verdict, VerdictKind
from services.domain.slots import Competition, Pair, competition
from services.domain.timeline import DerivedSpan
from tests.unit.domain.ledger import statement
from tests.unit.domain.worlds import DAYS, MAYBE

FACTS = [statement("likes", target) for target in ("grog", "jam", "rum", "tea")]
FACTS += [statement("lives_in", target) for target in ("Oslo", "Paris", "Rome")]
FACTS += [statement("stays_in", target) for target in ("Bern", "Rome")]
SINGLE = {fact.predicate for fact in FACTS[4:]}
PAIRS = list(combinations(sorted(fact.id for fact in FACTS), 2))

TOLD = list(product(FACTS, DAYS, MAYBE, [True, False]))
JUDGED = list(product(PAIRS, VerdictKind, Judge, DAYS))


@st.composite
def claims(draw: st.DrawFn) -> list[Claim]:
    """Of facts that nothing ends or denies; some are said twice."""
    made = []
    for at, drawn in enumerate(draw(st.lists(st.sampled_from(TOLD), min_size=1, max_size=8))):
        fact, said, start, narrated = drawn
        seen = start if narrated and start is not None else said
        made.append(Claim(RecordId(f"c{at}"), fact.id, start, None, said, seen, Source(None)))
    return made


@st.composite
def verdicts(draw: st.DrawFn) -> list[Verdict]:
    return [
        Verdict(RecordId(f"v{at}"), left, right, kind, judge, attested)
        for at, ((left, right), kind, judge, attested) in enumerate(draw(st.lists(st.sampled_from(JUDGED))))
    ]


def cardinality(predicate: str) -> Cardinality:
    return Cardinality.SINGLE if predicate in SINGLE else Cardinality.MULTI


Spans = Sequence[DerivedSpan]


@given(claims(), verdicts(), st.sampled_from(PAIRS))
def test_the_laws_of_verdicts_hold(said: list[Claim], judged: list[Verdict], pair: Pair) -> None:
    competing = competition(FACTS, said, judged, cardinality)
    spans = derived(said, judged)
    where_a_claim_begins_its_class_holds_or_what_contradicts_it(said, competing, spans)
    at_every_time_after_the_first_claim_something_of_each_closure_holds(spans)
    a_statement_that_derives_as_another_has_no_span_of_its_own(said, competing, spans)
    that_rivals_contradict_is_no_news(said, judged, pair, competing, spans)


def derived(said: list[Claim], judged: list[Verdict]) -> Spans:
    return derive(SlotRecords(tuple(FACTS), tuple(said), verdicts=tuple(judged)), cardinality)


def where_a_claim_begins_its_class_holds_or_what_contradicts_it(
    said: list[Claim], competing: Competition, spans: Spans
) -> None:
    for claim in said:
        start = claim.attested_at if claim.start is None else claim.start
        shown = competing.shown[claim.statement]
        there = [span.statement for span in spans if Interval(*span[1:3]).contains(start)]
        assert any(one == shown or competing.rivals(one, shown) for one in there)


def at_every_time_after_the_first_claim_something_of_each_closure_holds(spans: Spans) -> None:
    assert any(span.invalid_at is None for span in spans)


def a_statement_that_derives_as_another_has_no_span_of_its_own(
    said: list[Claim], competing: Competition, spans: Spans
) -> None:
    assert {span.statement for span in spans} <= set(competing.shown.values())
    claimed: list[Statement] = [one for one in FACTS if any(claim.statement == one.id for claim in said)]
    assert {competing.shown[one.id] for one in claimed} <= {claim.statement for claim in said}


def that_rivals_contradict_is_no_news(
    said: list[Claim], judged: list[Verdict], pair: Pair, competing: Competition, spans: Spans
) -> None:
    """A verdict that says so changes nothing, nor where the answer is contested."""
    if competing.rivals(*(competing.shown[one] for one in pair)):
        told = Verdict(RecordId("no news"), *pair, VerdictKind.CONTRADICTS, Judge.USER, DAYS[-1])
        assert derived(said, [*judged, told]) == spans
