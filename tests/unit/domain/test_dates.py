"""Dates in English text: hand-checked readings, ranges, zones, and what is no date."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.domain.dates import Prefer, Relation, find, read
from services.domain.instants import Instant, Precision, instant, moment

SAID = instant(datetime(2026, 6, 30, 14, 5, tzinfo=UTC))  # a Tuesday


def day(text: str) -> Instant:
    return instant(datetime.fromisoformat(text).replace(tzinfo=UTC))


def days(at: Instant | None) -> str:
    return "" if at is None else f"{moment(at):%Y-%m-%d}"


AT = [
    ("I moved to New York last January.", "last January", "2026-01-01", "2026-02-01", Precision.MONTH),
    ("I sold the Honda last week.", "last week", "2026-06-22", "2026-06-29", Precision.WEEK),
    ("We met yesterday.", "yesterday", "2026-06-29", "2026-06-30", Precision.DAY),
    ("She called this morning", "this morning", "2026-06-30", "2026-07-01", Precision.DAY),
    ("It broke last night", "last night", "2026-06-29", "2026-06-30", Precision.DAY),
    ("the day before yesterday", "the day before yesterday", "2026-06-28", "2026-06-29", Precision.DAY),
    ("I joined 3 days ago", "3 days ago", "2026-06-27", "2026-06-28", Precision.DAY),
    ("two weeks ago", "two weeks ago", "2026-06-15", "2026-06-22", Precision.WEEK),
    ("a couple of months ago", "a couple of months ago", "2026-04-01", "2026-05-01", Precision.MONTH),
    ("10 years ago", "10 years ago", "2016-01-01", "2017-01-01", Precision.YEAR),
    ("a few years back", "a few years back", "2023-01-01", "2024-01-01", Precision.YEAR),
    ("two weekends ago", "two weekends ago", "2026-06-20", "2026-06-22", Precision.DAY),
    ("in May 2024", "May 2024", "2024-05-01", "2024-06-01", Precision.MONTH),
    ("on 3 March 2021", "3 March 2021", "2021-03-03", "2021-03-04", Precision.DAY),
    ("on the 3rd of March 2021", "the 3rd of March 2021", "2021-03-03", "2021-03-04", Precision.DAY),
    ("May 7, 2023", "May 7, 2023", "2023-05-07", "2023-05-08", Precision.DAY),
    ("Sunday, May 7th, 2023", "Sunday, May 7th, 2023", "2023-05-07", "2023-05-08", Precision.DAY),
    ("due 2024-02-01", "2024-02-01", "2024-02-01", "2024-02-02", Precision.DAY),
    ("21/04/2016", "21/04/2016", "2016-04-21", "2016-04-22", Precision.DAY),
    ("in 2023", "2023", "2023-01-01", "2024-01-01", Precision.YEAR),
    ("Q3 2025", "Q3 2025", "2025-07-01", "2025-10-01", Precision.QUARTER),
    ("the third quarter of 2025", "the third quarter of 2025", "2025-07-01", "2025-10-01", Precision.QUARTER),
    ("last summer", "last summer", "2025-06-01", "2025-09-01", Precision.QUARTER),
    ("in the summer of 2021", "the summer of 2021", "2021-06-01", "2021-09-01", Precision.QUARTER),
    ("last weekend", "last weekend", "2026-06-27", "2026-06-29", Precision.DAY),
    ("last Friday", "last Friday", "2026-06-26", "2026-06-27", Precision.DAY),
    ("last Tuesday", "last Tuesday", "2026-06-23", "2026-06-24", Precision.DAY),
    ("on Friday", "on Friday", "2026-06-26", "2026-06-27", Precision.DAY),
    ("last month", "last month", "2026-05-01", "2026-06-01", Precision.MONTH),
    ("last year", "last year", "2025-01-01", "2026-01-01", Precision.YEAR),
    ("the year before last", "the year before last", "2024-01-01", "2025-01-01", Precision.YEAR),
    ("next month", "next month", "2026-07-01", "2026-08-01", Precision.MONTH),
    ("tomorrow", "tomorrow", "2026-07-01", "2026-07-02", Precision.DAY),
    ("in August", "August", "2025-08-01", "2025-09-01", Precision.MONTH),
    ("In April I left", "April", "2026-04-01", "2026-05-01", Precision.MONTH),
    ("early June", "early June", "2026-06-01", "2026-06-11", Precision.WEEK),
    ("late 2023", "late 2023", "2023-09-01", "2024-01-01", Precision.QUARTER),
    (
        "the Sunday before 25 May 2023",
        "the Sunday before 25 May 2023",
        "2023-05-21",
        "2023-05-22",
        Precision.DAY,
    ),
    (
        "the week before 9 June 2023",
        "the week before 9 June 2023",
        "2023-05-29",
        "2023-06-05",
        Precision.WEEK,
    ),
    (
        "the first Friday of July 2024",
        "the first Friday of July 2024",
        "2024-07-05",
        "2024-07-06",
        Precision.DAY,
    ),
    ("Christmas 2022", "Christmas 2022", "2022-12-25", "2022-12-26", Precision.DAY),
    ("Friday the 26th", "Friday the 26th", "2026-06-26", "2026-06-27", Precision.DAY),
    ("In the 90s", "the 90s", "1990-01-01", "2000-01-01", Precision.YEAR),
]


@pytest.mark.parametrize(("sentence", "text", "start", "end", "precision"), AT)
def test_a_time_said_in_2026_looks_back(
    sentence: str, text: str, start: str, end: str, precision: Precision
) -> None:
    (found,) = find(sentence, SAID)
    assert (found.text, days(found.start), days(found.end), found.precision) == (text, start, end, precision)
    assert found.relation is Relation.AT
    assert sentence[found.begin : found.finish] == text


JOINED = [
    ("since 2019", Relation.SINCE, "2019-01-01", "", Precision.YEAR),
    ("I have lived here since last March.", Relation.SINCE, "2026-03-01", "", Precision.MONTH),
    ("from May 2019 to July 2021", Relation.RANGE, "2019-05-01", "2021-07-01", Precision.MONTH),
    ("from 2019 to 2022", Relation.RANGE, "2019-01-01", "2022-01-01", Precision.YEAR),
    ("between May and July 2023", Relation.RANGE, "2023-05-01", "2023-07-01", Precision.MONTH),
    ("from November to February 2024", Relation.RANGE, "2023-11-01", "2024-02-01", Precision.MONTH),
    ("4-22 January, 1995", Relation.RANGE, "1995-01-04", "1995-01-22", Precision.DAY),
    ("2014-2018", Relation.RANGE, "2014-01-01", "2018-01-01", Precision.YEAR),
    ("until March 2024", Relation.UNTIL, "", "2024-03-01", Precision.MONTH),
    ("before 2020", Relation.BEFORE, "", "2020-01-01", Precision.YEAR),
    ("for 4 years", Relation.FOR, "2022-06-30", "2026-06-30", Precision.YEAR),
]


@pytest.mark.parametrize(("sentence", "relation", "start", "end", "precision"), JOINED)
def test_words_before_and_between_times_are_read(
    sentence: str, relation: Relation, start: str, end: str, precision: Precision
) -> None:
    (found,) = find(sentence, SAID)
    assert (found.relation, days(found.start), days(found.end)) == (relation, start, end)
    assert found.precision is precision


@pytest.mark.parametrize(
    "sentence",
    ["I may go", "we march on", "PostgreSQL 16 and MySQL 8.0", "it serves 2019 users", "on Fridays",
     "at port 2023", "since I was 12", "the fall of Rome", "one day", "version 3.11", "I sat down",
     "tenant 2024 has it"],
)  # fmt: skip
def test_what_only_looks_like_a_date_is_left_alone(sentence: str) -> None:
    assert find(sentence, SAID) == []


def test_plans_look_ahead() -> None:
    (friday,) = find("on Friday", SAID, prefer=Prefer.FUTURE)
    (may,) = find("in May", SAID, prefer=Prefer.FUTURE)
    (weeks,) = find("in 3 weeks", SAID, prefer=Prefer.FUTURE)
    assert (days(friday.start), days(may.start)) == ("2026-07-03", "2027-05-01")
    assert weeks.start is not None
    assert weeks.end is not None
    assert weeks.start <= day("2026-07-21") < weeks.end


def test_the_time_zone_decides_which_day_today_is() -> None:
    late = instant(datetime(2026, 6, 30, 20, 0, tzinfo=UTC))
    (utc,) = find("yesterday", late)
    (shanghai,) = find("yesterday", late, "Asia/Shanghai")
    assert (days(utc.start), days(shanghai.start)) == ("2026-06-29", "2026-06-30")


def test_hours_are_true_instants_in_any_zone() -> None:
    (found,) = find("2 hours ago", SAID, "America/New_York")
    assert found.start == SAID - 2 * 3_600_000_000
    assert found.precision is Precision.INSTANT


def test_two_times_of_one_sentence_are_both_found() -> None:
    found = find("I left in May 2020 and came back in June 2021.", SAID)
    assert [days(item.start) for item in found] == ["2020-05-01", "2021-06-01"]


def test_a_whole_expression_is_read_or_refused() -> None:
    exact = read("2026-03-04T05:06:00Z", SAID)
    assert exact is not None
    assert exact.start == instant(datetime(2026, 3, 4, 5, 6, tzinfo=UTC))
    assert read("once upon a time, in May 2020 or so, there was", SAID) is None
    assert read("", SAID) is None
    fallen_back = read("4 juin 2024", SAID)
    assert fallen_back is not None
    assert days(fallen_back.start) == "2024-06-04"
    assert fallen_back.confidence < 0.7


@given(st.text(max_size=60), st.sampled_from(["UTC", "Asia/Shanghai", "America/Los_Angeles"]))
def test_any_text_gives_ordered_spans_that_quote_it(text: str, zone: str) -> None:
    position = 0
    for found in find(text, SAID, zone):
        assert position <= found.begin < found.finish
        assert text[found.begin : found.finish] == found.text
        assert found.at is not None
        position = found.finish


@example(2027, "years")
@given(st.integers(1, 9999), st.sampled_from(["days", "weeks", "months", "years", "decades"]))
def test_counts_too_great_for_the_calendar_are_no_dates(count: int, unit: str) -> None:
    for found in find(f"{count} {unit} ago and for {count} {unit}", SAID):
        assert found.start is not None
        assert found.start < SAID
