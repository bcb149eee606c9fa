"""The laws of coarse dates and of pasts told later (docs/adr/0013), for any dates."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Instant, Precision, period
from services.domain.records import Claim, End, Source
from tests.unit.domain.oracle import Oracle
from tests.unit.domain.worlds import World, worlds

LINZ, VIENNA = StatementId("Linz"), StatementId("Vienna")
HOUR = 3_600_000_000
NEW_YEAR = 1_735_689_600_000_000  # 2025-01-01
COARSE = [each for each in Precision if each is not Precision.INSTANT]


def instants(first: int = NEW_YEAR, last: int = NEW_YEAR + 700 * 24 * HOUR) -> st.SearchStrategy[Instant]:
    return st.integers(first, last).map(Instant)


def said(
    id: str, of: StatementId, start: Instant | None, attested: Instant, seen: Instant, **more: object
) -> Claim:
    made = Claim(RecordId(id), of, start, None, attested, seen, Source(None))
    return replace(made, **more)  # type: ignore[arg-type]  # fields of a claim, by name


@st.composite
def coarse_moves(draw: st.DrawFn) -> tuple[Claim, Claim]:
    """Linz, last seen in the period in which the move to Vienna, told after that, is said to have been."""
    named, precision = draw(instants()), draw(st.sampled_from(COARSE))
    whole = period(named, precision)
    assert whole.start is not None
    assert whole.end is not None
    seen = draw(instants(whole.start, whole.end - 2))
    start = draw(st.none() | instants(whole.start - 1_000 * HOUR, seen))
    assume(start is None or start != whole.start)  # the same start, said again, is a correction
    told = seen if start is None else draw(instants(seen, seen + 9_000 * HOUR))
    linz = said("linz", LINZ, start, told, seen)
    attested = draw(instants(seen + 1, whole.end + 9_000 * HOUR))
    vouched = draw(st.sampled_from([attested, whole.start]))
    return linz, said("vienna", VIENNA, named, attested, vouched, start_precision=precision)


@given(coarse_moves())
def test_a_coarse_start_hides_nobody_who_was_seen_in_its_period(moves: tuple[Claim, Claim]) -> None:
    assert {span.statement for span in World(moves).spans()} == {LINZ, VIENNA}


@given(coarse_moves())
def test_who_began_before_a_coarse_period_yields_after_he_was_last_seen_in_it(
    moves: tuple[Claim, Claim],
) -> None:
    linz, vienna = moves
    first = period(vienna.start or Instant(0), vienna.start_precision).start
    assume(linz.start is None or (first is not None and linz.start < first))
    before, after = World(moves).spans()
    assert (before.statement, after.statement) == (LINZ, VIENNA)
    assert (before.valid_at, before.invalid_at) == (linz.start or linz.seen, linz.seen + 1)
    assert (after.valid_at, after.invalid_at) == (linz.seen + 1, None)


@given(instants(), st.sampled_from(COARSE), instants(), st.booleans())
def test_a_coarse_start_is_its_periods_first_instant_where_no_rival_was_seen(
    named: Instant, precision: Precision, attested: Instant, narrated: bool
) -> None:
    whole = period(named, precision)
    assert whole.start is not None
    assert whole.end is not None
    vienna = said(
        "v", VIENNA, named, attested, whole.start if narrated else attested, start_precision=precision
    )
    earlier = said("l", LINZ, Instant(whole.start - 3), attested, Instant(whole.start - 2))
    assert [span.valid_at for span in World((vienna,)).spans()] == [whole.start]
    assert [span.valid_at for span in World((vienna, earlier)).spans()] == [earlier.start, whole.start]


@given(worlds())
def test_a_coarse_start_is_one_instant_of_its_period_and_all_else_follows(world: World) -> None:
    oracle = Oracle(world.claims(), world.ends(), world.denials(), world.contradicts)
    exact = []
    for record in world.records:
        if isinstance(record, Claim) and record.start is not None:
            at = Instant(int(oracle.start(record)))
            whole = period(record.start, record.start_precision)
            assert whole.contains(at)
            record = replace(record, start=at, start_precision=Precision.INSTANT)
        exact.append(record)
    assert [(s.statement, s.valid_at, s.invalid_at, s.started_by, s.ended_by) for s in world.spans()] == [
        (s.statement, s.valid_at, s.invalid_at, s.started_by, s.ended_by) for s in world.but(exact).spans()
    ]


@st.composite
def stays_and_mentions(draw: st.DrawFn) -> tuple[Claim, Claim]:
    """A mention without a date, and a stay that was over by then, told whole and later."""
    start, length, gap, wait = (draw(st.integers(1, 9_000 * HOUR)) for _ in range(4))
    made = Instant(NEW_YEAR + start + length + gap)
    mention = said("mention", LINZ, None, made, made)
    told = Instant(made + wait)
    stay = said("stay", LINZ, Instant(NEW_YEAR + start), told, told, end=Instant(NEW_YEAR + start + length))
    return mention, stay


@given(stays_and_mentions())
def test_a_past_told_whole_ends_nothing_that_was_said_of_the_present_after_it(
    told: tuple[Claim, Claim],
) -> None:
    mention, stay = told
    past, present = World(told).spans()
    assert (past.valid_at, past.invalid_at) == (stay.start, stay.end)
    assert (present.valid_at, present.invalid_at) == (mention.attested_at, None)


@given(stays_and_mentions(), st.integers(1, 9_000 * HOUR), st.booleans())
def test_an_end_told_again_ends_nothing_that_was_said_since_it_was_told(
    told: tuple[Claim, Claim], wait: int, begun: bool
) -> None:
    mention, stay = told
    assert stay.end is not None
    first = End(RecordId("first"), LINZ, stay.end, stay.end, Source(None))
    again = replace(first, id=RecordId("again"), attested_at=Instant(mention.attested_at + wait))
    opened = [said("open", LINZ, Instant(NEW_YEAR), Instant(NEW_YEAR), Instant(NEW_YEAR))] if begun else []
    once, twice = World((*opened, mention, first)), World((*opened, mention, first, again))
    assert once.spans() == twice.spans()
    assert once.spans()[-1].valid_at == mention.attested_at
