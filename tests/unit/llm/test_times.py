"""Times as models write them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.facts import StatedTime
from services.domain.instants import Precision, instant, period
from services.llm.times import iso, parse_stated, show


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at", "precision"),
    [
        ("2025", utc(2025, 1, 1), Precision.YEAR),
        ("2025-Q3", utc(2025, 7, 1), Precision.QUARTER),
        ("Q3 2025", utc(2025, 7, 1), Precision.QUARTER),
        ("2025-03", utc(2025, 3, 1), Precision.MONTH),
        ("2025-W30", utc(2025, 7, 21), Precision.WEEK),
        ("2025-03-09", utc(2025, 3, 9), Precision.DAY),
        ("2025-03-09T00:00:00Z", utc(2025, 3, 9), Precision.DAY),
        ("2025-03-09T10:15:00+08:00", utc(2025, 3, 9, 2, 15), Precision.INSTANT),
        ("2025-03-09 10:15", utc(2025, 3, 9, 10, 15), Precision.INSTANT),
    ],
)
def test_iso_forms_have_an_instant_and_a_precision(text: str, at: datetime, precision: Precision) -> None:
    assert parse_stated(f" {text} ") == StatedTime(text, instant(at), precision)


@pytest.mark.parametrize("text", [None, "", "null", "Present", "unknown", "ongoing"])
def test_no_time_is_none(text: str | None) -> None:
    assert parse_stated(text) is None


@pytest.mark.parametrize(
    "text",
    ["next week", "2025-13", "2025-02-30", "0000", "2021-W53", "去年", "9999-12-31T23:00:00-12:00", "12025"],
)
def test_what_is_no_date_stays_text(text: str) -> None:
    assert parse_stated(text) == StatedTime(text)


@given(st.text(max_size=30))
def test_any_text_is_read_without_an_error(text: str) -> None:
    stated = parse_stated(text)
    assert stated is None or stated.text == text.strip()


@given(st.integers(0, 9_997 * 365), st.sampled_from(Precision))
def test_the_iso_form_of_a_time_reads_back(days: int, precision: Precision) -> None:
    at = period(instant(utc(1, 1, 8) + timedelta(days=days, minutes=days % 1440)), precision).start
    assert at is not None
    again = parse_stated(iso(StatedTime("", at, precision)))
    assert again is not None
    assert again.at == at
    assert parse_stated(show(at)) in (again, StatedTime(show(at), at, Precision.DAY))
