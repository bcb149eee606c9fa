"""Instants and precision: world time as integers, and what a coarse time covers."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from typing import NewType

Instant = NewType("Instant", int)
"""World or clock time: whole microseconds since 1970-01-01T00:00:00Z, negative before it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1) // _MICROSECOND

BEGINNING = Instant((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND)
"""The earliest instant a date can name; stores use it where a start is unknown."""
FOREVER = Instant((datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - _EPOCH) // _MICROSECOND)
"""The latest instant a date can name; stores use it where an end is open."""


class Precision(IntEnum):
    """How fine a stated time is. Greater is coarser."""

    INSTANT = 0
    DAY = 1
    WEEK = 2
    MONTH = 3
    QUARTER = 4
    YEAR = 5


@dataclass(frozen=True, slots=True)
class Interval:
    """Half-open world time `[start, end)`; None is open on that side."""

    start: Instant | None
    end: Instant | None

    def contains(self, at: Instant) -> bool:
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)

    def meets(self, other: "Interval") -> bool:
        """True when the two share an instant."""
        return self._starts_before(other.end) and other._starts_before(self.end)

    def _starts_before(self, end: Instant | None) -> bool:
        return self.start is None or end is None or self.start < end


def instant(moment: datetime) -> Instant:
    """The instant of a datetime; a naive one is read as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Instant((aware - _EPOCH) // _MICROSECOND)


def moment(at: Instant) -> datetime:
    """The aware UTC datetime of an instant. Raises OverflowError outside the years 1 to 9999."""
    return _EPOCH + timedelta(microseconds=at)


def period(at: Instant, precision: Precision) -> Interval:
    """The calendar period (UTC, ISO weeks) of this precision that holds `at`.

    Raises OverflowError outside the years 1 to 9999; the end of the last year is the instant after FOREVER.
    """
    if precision is Precision.INSTANT:
        return Interval(at, Instant(at + 1))
    day = moment(at).date()
    match precision:
        case Precision.DAY:
            return _days(day, 1)
        case Precision.WEEK:
            return _days(day - timedelta(days=day.weekday()), 7)
        case Precision.MONTH:
            return _months(day.year, day.month, 1)
        case Precision.QUARTER:
            return _months(day.year, day.month - (day.month - 1) % 3, 3)
        case Precision.YEAR:
            return _months(day.year, 1, 12)


def _days(first: date, count: int) -> Interval:
    start = (first.toordinal() - _EPOCH.toordinal()) * _DAY
    return Interval(Instant(start), Instant(start + count * _DAY))


def _months(year: int, month: int, count: int) -> Interval:
    first = date(year, month, 1)
    days = sum(monthrange(year, each)[1] for each in range(month, month + count))
    return _days(first, days)
