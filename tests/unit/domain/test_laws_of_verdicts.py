"""Whatever verdicts say, circles of them included, nothing that is claimed is lost without a successor."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from services.domain.beliefs import SlotRecords, derive
from services.domain.graph import Statement
from services.domain.ids import RecordId
from services.domain.instants import Interval
from services.domain.predicates import Cardinality
from services.domain.records import Claim, Judge, Source, Verdict, VerdictKind
from services.domain.slots import Competition, competition
from tests.unit.domain.ledger import statement
from tests.unit.domain.worlds import instants

FACTS = [statement("likes", target) for target in ("grog", "jam", "rum", "tea")]
FACTS += [statement("lives_in", target) for target in ("Oslo", "Rome")]
SINGLE = statement("lives_in", "Oslo").predicate


@st.composite
def claims(draw: st.DrawFn) -> list[Claim]:
    """Of facts that nothing ends or denies; some are said twice."""
    told = draw(st.lists(st.sampled_from(FACTS), min_size=1, max_size=8))
    made = []
    for at, one in enumerate(told):
        said, start = draw(instants()), draw(st.none() | instants())
        seen = draw(st.sampled_from([said, said if start is None else start]))
        made.append(Claim(RecordId(f"c{at}"), one.id, start, None, said, seen, Source(None)))
    return made


@st.composite
def verdicts(draw: st.DrawFn) -> list[Verdict]:
    made = []
    for at, (one, other) in enumerate(draw(st.lists(st.sampled_from(list(combinations(FACTS, 2)))))):
        left, right = sorted((one.id, other.id))
        kind, judge = draw(st.sampled_from(VerdictKind)), draw(st.sampled_from(Judge))
        made.append(Verdict(RecordId(f"v{at}"), left, right, kind, judge, draw(instants())))
    return made


def cardinality(predicate: str) -> Cardinality:
    return Cardinality.SINGLE if predicate == SINGLE else Cardinality.MULTI


def among(said: list[Claim], judged: list[Verdict]) -> Competition:
    return competition(FACTS, said, judged, cardinality)


@given(claims(), verdicts())
def test_where_a_claim_begins_its_class_holds_or_what_contradicts_it(
    said: list[Claim], judged: list[Verdict]
) -> None:
    competing = among(said, judged)
    spans = derive(SlotRecords(tuple(FACTS), tuple(said), verdicts=tuple(judged)), cardinality)
    for claim in said:
        start = claim.attested_at if claim.start is None else claim.start
        shown = competing.shown[claim.statement]
        there = [span.statement for span in spans if Interval(*span[1:3]).contains(start)]
        assert any(one == shown or competing.rivals(one, shown) for one in there)


@given(claims(), verdicts())
def test_at_every_time_after_the_first_claim_something_of_each_closure_holds(
    said: list[Claim], judged: list[Verdict]
) -> None:
    spans = derive(SlotRecords(tuple(FACTS), tuple(said), verdicts=tuple(judged)), cardinality)
    assert any(span.invalid_at is None for span in spans)


@given(claims(), verdicts())
def test_a_statement_that_derives_as_another_has_no_span_of_its_own(
    said: list[Claim], judged: list[Verdict]
) -> None:
    competing = among(said, judged)
    spans = derive(SlotRecords(tuple(FACTS), tuple(said), verdicts=tuple(judged)), cardinality)
    assert {span.statement for span in spans} <= set(competing.shown.values())
    claimed: list[Statement] = [one for one in FACTS if any(claim.statement == one.id for claim in said)]
    assert {competing.shown[one.id] for one in claimed} <= {claim.statement for claim in said}
