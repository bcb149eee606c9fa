"""Times that an engine proposes, against the words it quotes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.domain.facts import FactKind, Mention, StatedTime, Turn, WorldFact
from services.domain.instants import Precision, instant, moment
from services.domain.memory import EpisodeKind, Role
from services.extractor.dating import OVERRULED, Dated, Dating
from services.llm.tasks import Setting
from services.llm.times import parse_stated

SAID = instant(datetime(2026, 6, 30, 14, 5, tzinfo=UTC))  # a Tuesday
SETTING = Setting(EpisodeKind.CONVERSATION, SAID)


def check(fact: WorldFact, setting: Setting = SETTING) -> Dated:
    return Dating([Turn(0, fact.quote, "", Role.USER, SAID)], setting).check([fact])


def claim(quote: str, start: str | None = None, sentence: str = "Ana lives in Porto.") -> WorldFact:
    return WorldFact(
        FactKind.CLAIM, Mention("Ana"), "lives_in", Mention("Porto"), sentence, 0, quote, parse_stated(start)
    )


def shown(time: StatedTime | None) -> str:
    return "" if time is None or time.at is None else f"{moment(time.at):%Y-%m-%d} {time.precision.name}"


@pytest.mark.parametrize(
    ("quote", "model", "ours"),
    [
        ("I moved to Porto last week", "2026-06-15", "2026-06-22 WEEK"),
        ("I moved to Porto in 2020", "2021", "2020-01-01 YEAR"),
        ("Last week, I moved to Porto.", "2026-06-15", "2026-06-22 WEEK"),
        ("我去年搬到了波尔图", "2024", "2025-01-01 YEAR"),
        ("三年前我搬到了波尔图", "2022", "2023-01-01 YEAR"),
        ("I moved to Porto last month", "2026-05-01", "2026-05-01 MONTH"),
    ],
)
def test_words_beat_a_date_that_can_not_be_what_they_mean(quote: str, model: str, ours: str) -> None:
    dated = check(claim(quote, model))
    assert shown(dated.facts[0].start) == ours
    assert dated.warnings == (OVERRULED,)


@pytest.mark.parametrize(
    ("quote", "model"),
    [
        ("I moved to Porto last week", "2026-06-24"),  # finer, and inside
        ("I moved to Porto last month", "2026-05-15"),
        ("I moved to Porto last week", "2026-06"),
        ("I moved to Porto in May", "2027-05"),  # may look ahead: two readings
        ("I moved to Porto and yesterday I left again", "2020"),  # the time of another clause
        ("I worked there in 2019, now I live in Porto", "2026"),
        ("I moved to Porto between 2018 and 2020", "2018"),
        ("I moved to Porto", "2020"),
    ],
)
def test_what_may_be_right_stays(quote: str, model: str) -> None:
    fact = claim(quote, model)
    assert check(fact) == Dated((fact,))


def test_a_time_left_in_words_gets_its_instant() -> None:
    left = replace(
        claim("I moved to Porto"), start=StatedTime("last week"), seen=StatedTime("once upon a time")
    )
    (fact,) = check(left).facts
    assert shown(fact.start) == "2026-06-22 WEEK"
    assert fact.start is not None
    assert (fact.start.text, fact.seen) == ("last week", StatedTime("once upon a time"))
    chinese = replace(claim("我搬到了波尔图"), start=StatedTime("去年国庆节"))
    assert shown(check(chinese).facts[0].start) == "2025-10-01 DAY"


def test_a_date_that_the_sentence_tells_but_the_field_lacks_is_filled() -> None:
    said = claim("I moved to Porto last year", None, "Ana moved to Porto in 2025.")
    (fact,) = check(said).facts
    assert (shown(fact.start), fact.seen) == ("2025-01-01 YEAR", fact.start)
    silent = claim("I moved to Porto last year")
    assert check(silent).facts == (silent,)
    other = claim("I moved to Porto last year", None, "Ana moved to Porto in 2019.")
    assert check(other).facts == (other,)
    now = claim("I live in Porto this year", None, "Ana lives in Porto in 2026.")
    assert check(now).facts == (now,)


def test_an_end_is_checked_by_its_end() -> None:
    left = replace(claim("I left Porto two years ago"), kind=FactKind.END, end=parse_stated("2023"))
    (fact,) = check(left).facts
    assert (shown(fact.end), fact.start) == ("2024-01-01 YEAR", None)
    until = replace(claim("I lived in Porto until March 2024"), end=parse_stated("2025-03"))
    assert shown(check(until).facts[0].end) == "2024-03-01 MONTH"


def test_what_was_seen_moves_with_the_start_it_was() -> None:
    wrong = parse_stated("2021")
    moved = replace(claim("I moved to Porto in 2020"), start=wrong, seen=wrong)
    (fact,) = check(moved).facts
    assert shown(fact.seen) == shown(fact.start) == "2020-01-01 YEAR"


def test_the_day_is_that_of_the_users_zone_and_an_unknown_zone_is_utc() -> None:
    late = replace(SETTING, reference_time=instant(datetime(2026, 6, 30, 20, tzinfo=UTC)))
    fact = replace(claim("I moved to Porto"), start=StatedTime("yesterday"))
    turn = Turn(0, fact.quote, "", Role.USER)
    days = [
        shown(Dating([turn], replace(late, time_zone=zone)).check([fact]).facts[0].start)
        for zone in ("Asia/Shanghai", "UTC", "Nowhere/At_All", "")
    ]
    assert days == ["2026-06-30 DAY", "2026-06-29 DAY", "2026-06-29 DAY", "2026-06-29 DAY"]


def test_a_denial_keeps_its_dates() -> None:
    denied = replace(claim("I did not live in Porto in 2020", "2021"), kind=FactKind.DENIAL)
    assert check(denied).facts == (denied,)
    assert denied.start is not None
    assert denied.start.precision is Precision.YEAR
