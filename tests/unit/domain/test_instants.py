"""Instants: what periods cover, to the ends of the calendar."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.instants import BEGINNING, FOREVER, Instant, Interval, Precision, instant, moment, period
from tests.unit.domain.given import day

ANY = st.integers(BEGINNING, FOREVER).map(Instant)


@pytest.mark.parametrize(
    ("at", "precision", "first", "after"),
    [
        ("2024-02-29", Precision.DAY, "2024-02-29", "2024-03-01"),
        ("2024-02-29", Precision.WEEK, "2024-02-26", "2024-03-04"),
        ("2024-02-29", Precision.MONTH, "2024-02-01", "2024-03-01"),
        ("2024-12-31", Precision.MONTH, "2024-12-01", "2025-01-01"),
        ("2024-11-05", Precision.QUARTER, "2024-10-01", "2025-01-01"),
        ("2023-01-01", Precision.WEEK, "2022-12-26", "2023-01-02"),
        ("1969-06-01", Precision.YEAR, "1969-01-01", "1970-01-01"),
    ],
)
def test_periods(at: str, precision: Precision, first: str, after: str) -> None:
    assert period(Instant(day(at) + 3_600_000_000), precision) == Interval(day(first), day(after))


@given(ANY, st.sampled_from(Precision))
def test_a_period_holds_its_instant_and_is_the_period_of_its_first(at: Instant, precision: Precision) -> None:
    whole = period(at, precision)
    assert whole.contains(at)
    assert whole.start is not None
    assert period(whole.start, precision) == whole


@given(ANY)
def test_a_moment_is_the_instant_it_came_from(at: Instant) -> None:
    assert instant(moment(at)) == at


def test_naive_is_utc_and_zones_are_read() -> None:
    naive = datetime(2024, 5, 1, 8)  # noqa: DTZ001  # what is tested
    zoned = datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2)))
    assert instant(naive) == instant(zoned) == instant(datetime(2024, 5, 1, 8, tzinfo=UTC))


BORDERS = st.tuples(*[st.none() | st.integers(0, 6).map(Instant)] * 2)


@given(BORDERS, BORDERS)
def test_intervals_meet_where_they_share_an_instant(
    one: tuple[Instant | None, Instant | None], other: tuple[Instant | None, Instant | None]
) -> None:
    left, right = Interval(*one), Interval(*other)
    # From one instant before all borders to one after them.
    shared = any(left.contains(Instant(at)) and right.contains(Instant(at)) for at in range(-1, 8))
    if all(each.start is None or each.end is None or each.start < each.end for each in (left, right)):
        assert left.meets(right) == shared
