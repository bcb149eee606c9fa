"""Dates as people type them, amounts of credits, and how both are shown."""

from datetime import UTC, datetime

import pytest
import typer
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.cli.dates import read_date, read_known_at, shown, timestamp
from palimpsest.cli.operating import read_credits
from palimpsest.cli.words import amount
from palimpsest.v1 import common_pb2 as pb


@pytest.mark.parametrize(
    ("text", "first_instant", "precision"),
    [
        ("2025", "2025-01-01T00:00:00Z", pb.PRECISION_YEAR),
        ("2025-Q3", "2025-07-01T00:00:00Z", pb.PRECISION_QUARTER),
        ("2025-03", "2025-03-01T00:00:00Z", pb.PRECISION_MONTH),
        ("2025-W10", "2025-03-03T00:00:00Z", pb.PRECISION_WEEK),
        (" 2025-03-31 ", "2025-03-31T00:00:00Z", pb.PRECISION_DAY),
        ("2025-03-31T14:00", "2025-03-31T14:00:00Z", pb.PRECISION_INSTANT),
        ("2025-03-31T14:00+02:00", "2025-03-31T12:00:00Z", pb.PRECISION_INSTANT),
        ("2025-03-31 14:00:05Z", "2025-03-31T14:00:05Z", pb.PRECISION_INSTANT),
    ],
)
def test_a_date_is_its_periods_first_instant(text: str, first_instant: str, precision: int) -> None:
    date = read_date(text)
    assert (date.timestamp.ToJsonString(), date.precision) == (first_instant, precision)


@pytest.mark.parametrize(
    "text", ["", "soon", "20250", "2025-13", "2025-02-30", "2024-W53", "2025-W54", "2025-Q5", "25"]
)
def test_what_is_no_date_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="2025-Q3"):
        read_date(text)


@pytest.mark.parametrize("text", ["2025", "2025-Q3", "2025-03", "2025-W10", "2025-03-31"])
def test_a_date_is_shown_as_it_was_typed(text: str) -> None:
    date = read_date(text)
    assert shown(date.timestamp, date.precision) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_instant_is_shown(at: datetime) -> None:
    """From the year 1 to 9999; whole days without a time."""
    expected = at.strftime("%H:%M:%S")
    text = shown(timestamp(at))
    assert text.startswith(f"{at.year:04}-{at.month:02}-{at.day:02}")
    assert text.endswith(expected) or (expected == "00:00:00" and len(text) == 10)


def test_a_plain_number_is_a_revision_and_a_date_a_time() -> None:
    assert read_known_at("12") == pb.KnownAt(revision=12)
    assert read_known_at("2025-03-31") == pb.KnownAt(time=Timestamp(seconds=1743379200))


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_an_amount_that_is_shown_can_be_read_again(micros: int) -> None:
    assert read_credits(amount(micros).replace(",", "")) == micros


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "0"), (1_200, "0.0012"), (1_500_000, "1.5"), (-1, "-0.000001"), (10**12, "1,000,000")],
)
def test_amounts_are_exact(micros: int, text: str) -> None:
    assert amount(micros) == text


@pytest.mark.parametrize("text", ["", "x", "1.0000001", "nan", "inf", "-inf", "1e400"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        read_credits(text)
