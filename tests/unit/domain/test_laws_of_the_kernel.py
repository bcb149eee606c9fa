"""The kernel's short ways answer as the long one: turns and lone objects as the sweep over any relation."""

from dataclasses import replace

from hypothesis import given

from services.domain.instants import Precision
from services.domain.kernel.alone import alone
from services.domain.kernel.held import Held
from services.domain.kernel.lives import Life
from services.domain.kernel.rivals import Rivals, both_ways
from services.domain.kernel.stays import Denied
from services.domain.kernel.sweep import Sweep
from services.domain.kernel.unended import Unended
from services.domain.records import Claim, Denial, End
from services.domain.timeline import timeline
from tests.unit.domain.diaries import diaries
from tests.unit.domain.given import claim, day, denial, end
from tests.unit.domain.worlds import PAIRS, World, worlds


def facts(held: Held) -> tuple[object, ...]:
    return (
        held.object,
        held.start,
        held.end,
        held.started_by,
        held.precision,
        held.assumed,
        held.ended_by,
        held.end_precision,
    )


@given(worlds(most=40))
def test_taking_turns_is_the_sweep_where_each_contradicts_all_others(world: World) -> None:
    records = world.claims(), world.ends(), world.denials()
    slot = Rivals(slots={record.statement: "slot" for record in world.records})
    pairs = Rivals(judged=both_ways(PAIRS))
    assert timeline(*records, slot) == timeline(*records, pairs)


@given(diaries())
def test_a_life_in_chapters_is_the_sweep_over_the_whole(records: list[Claim | End | Denial]) -> None:
    world = World(tuple(records))
    told = world.claims(), world.ends(), world.denials()
    slot = Rivals(slots={record.statement: "slot" for record in records})
    assert timeline(*told, slot) == timeline(*told, Rivals(judged=both_ways(PAIRS)))


def test_what_is_wholly_denied_makes_no_room() -> None:
    claims = [
        claim("present", "Oslo", None, None, "2022-12-30"),
        claim("again", "Oslo", "2023-02-01", "2023-04-01", "2022-12-30", "2023-04-01"),
        claim("denied", "Paris", None, "2023-03-01", "2022-12-30", end_precision=Precision.DAY),
        claim(
            "between",
            "Rome",
            "2023-01-09",
            "2023-01-01",
            "2023-07-01",
            "2023-03-01",
            end_precision=Precision.QUARTER,
        ),
    ]
    ends, denials = (
        [end("over", "Oslo", "2022-12-30", "2022-12-30")],
        [denial("no", "Paris", None, None, "2022-12-30")],
    )
    slot = Rivals(slots={each.statement: "slot" for each in claims})
    spans = timeline(claims, ends, denials, slot)
    assert spans == timeline(claims, ends, denials, Rivals(judged=both_ways(PAIRS)))
    assert (spans[-1].statement, spans[-1].start_precision) == ("Oslo", Precision.INSTANT)


@given(worlds(most=20))
def test_an_object_alone_is_the_sweep_over_it(world: World) -> None:
    denied = Denied(world.denials())
    for object in {record.statement for record in world.records}:
        life = Life(
            object,
            [claim for claim in world.claims() if claim.statement == object],
            [end for end in world.ends() if end.statement == object],
        )
        stays = life.settled()
        swept = Sweep(stays, denied, Rivals(), str).run()
        swept.sort(key=lambda held: held.start)
        assert [facts(held) for held in alone(stays, denied)] == [facts(held) for held in swept]


def test_a_start_that_is_denied_does_not_say_how_fine_the_start_is_known() -> None:
    said = claim("present", "Oslo", None, None, "2022-12-30")
    taken = denial("no", "Oslo", None, "2023-01-01", "2022-12-30")
    again = claim("day", "Oslo", "2022-12-30", None, "2023-01-01", start_precision=Precision.DAY)
    (span,) = timeline([said, again], [], [taken], Rivals())
    assert (span.valid_at, span.start_precision) == (day("2022-12-30"), Precision.DAY)


@given(worlds(most=20))
def test_claims_without_ends_speak_as_their_life_does(world: World) -> None:
    for object in {each.statement for each in world.claims()}:
        claims = [replace(each, end=None) for each in world.claims() if each.statement == object]
        life, unended = Life(object, claims, ()), Unended(claims)
        assert unended.settled() == life.settled()
        assert (unended.coarse, sorted(set(unended.said_at))) == (life.coarse, life.said_at)
