"""Calendar arithmetic on local, naive datetimes: the periods that dates in a text name."""

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum

from services.domain.instants import Precision


class Prefer(Enum):
    """Where a date without a year lies: people who talk look back, people who plan look ahead."""

    PAST = "past"
    FUTURE = "future"


class Unit(StrEnum):
    """What times are counted in."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"
    DECADE = "decade"


PRECISION_OF = {
    Unit.MINUTE: Precision.INSTANT,
    Unit.HOUR: Precision.INSTANT,
    Unit.DAY: Precision.DAY,
    Unit.WEEK: Precision.WEEK,
    Unit.MONTH: Precision.MONTH,
    Unit.QUARTER: Precision.QUARTER,
    Unit.YEAR: Precision.YEAR,
    Unit.DECADE: Precision.YEAR,
}

FIRST_YEAR, LAST_YEAR = 2, 9998
"""Years that can be shifted by a period without leaving what a datetime holds."""


def local(year: int, month: int = 1, day: int = 1, hour: int = 0, minute: int = 0) -> datetime:
    """Local time without a zone; the resolver makes it an instant. Raises ValueError for no such day."""
    return datetime(year, month, day, hour, minute)  # noqa: DTZ001


@dataclass(frozen=True, slots=True)
class Reading:
    """What an expression names: `[first, last)` in local time, and how sure that is.

    `floats` is true when the year was not said, so that a neighbour with a year may decide it.
    """

    first: datetime
    last: datetime
    precision: Precision
    confidence: float = 1.0
    floats: bool = False

    def in_year(self, year: int) -> "Reading":
        """The same dates of another year. Raises ValueError if it has no such day."""
        moved = self.first.replace(year=year)
        return replace(self, first=moved, last=self.last + (moved - self.first), floats=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """When a text was said, in local time, and which way it looks."""

    now: datetime
    prefer: Prefer = Prefer.PAST

    @property
    def today(self) -> datetime:
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)


def day(at: datetime, confidence: float = 1.0, *, floats: bool = False) -> Reading:
    start = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return Reading(start, start + timedelta(days=1), Precision.DAY, confidence, floats)


def week(at: datetime, confidence: float = 1.0) -> Reading:
    """The ISO week (from Monday) that holds `at`."""
    monday = day(at).first - timedelta(days=at.weekday())
    return Reading(monday, monday + timedelta(days=7), Precision.WEEK, confidence)


def weekend(at: datetime, confidence: float = 0.9) -> Reading:
    """Saturday and Sunday of the ISO week that holds `at`: named by its first day."""
    monday = week(at).first
    return Reading(monday + timedelta(days=5), monday + timedelta(days=7), Precision.DAY, confidence)


def month(year: int, number: int, confidence: float = 1.0, *, floats: bool = False) -> Reading:
    first = local(year, number, 1)
    return Reading(first, shift(first, Unit.MONTH, 1), Precision.MONTH, confidence, floats)


def quarter(year: int, number: int) -> Reading:
    first = local(year, 3 * number - 2, 1)
    return Reading(first, shift(first, Unit.MONTH, 3), Precision.QUARTER)


def year(number: int, confidence: float = 1.0) -> Reading:
    return Reading(
        local(number, 1, 1),
        local(number + 1, 1, 1),
        Precision.YEAR,
        confidence,
    )


def decade(number: int) -> Reading:
    first = number - number % 10
    return Reading(local(first, 1, 1), local(first + 10, 1, 1), Precision.YEAR, 0.9)


SEASON_MONTHS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First months of the meteorological seasons of the northern half."""


def season(year: int, name: str, confidence: float = 0.7) -> Reading:
    """Three months. Which half of the earth the speaker lives on is not known, hence the low confidence."""
    first = local(year, SEASON_MONTHS[name], 1)
    return Reading(first, shift(first, Unit.MONTH, 3), Precision.QUARTER, confidence)


def shift(at: datetime, unit: Unit, count: int) -> datetime:
    """`at` moved by whole units; a day that the month lacks becomes its last. Raises OverflowError."""
    match unit:
        case Unit.MINUTE | Unit.HOUR | Unit.DAY | Unit.WEEK:
            return at + count * _LENGTH[unit]
        case Unit.MONTH:
            months = at.year * 12 + at.month - 1 + count
        case Unit.QUARTER:
            months = at.year * 12 + at.month - 1 + 3 * count
        case Unit.YEAR:
            months = (at.year + count) * 12 + at.month - 1
        case Unit.DECADE:
            months = (at.year + 10 * count) * 12 + at.month - 1
    to_year, to_month = divmod(months, 12)
    if not FIRST_YEAR <= to_year <= LAST_YEAR:
        raise OverflowError(f"year {to_year}")
    last = monthrange(to_year, to_month + 1)[1]
    return at.replace(year=to_year, month=to_month + 1, day=min(at.day, last))


_LENGTH = {
    Unit.MINUTE: timedelta(minutes=1),
    Unit.HOUR: timedelta(hours=1),
    Unit.DAY: timedelta(days=1),
    Unit.WEEK: timedelta(days=7),
}


def whole(at: datetime, unit: Unit, confidence: float = 1.0) -> Reading:
    """The calendar period of this unit that holds `at`."""
    match unit:
        case Unit.MINUTE | Unit.HOUR:
            return Reading(at, at + _LENGTH[unit], Precision.INSTANT, confidence)
        case Unit.DAY:
            return day(at, confidence)
        case Unit.WEEK:
            return week(at, confidence)
        case Unit.MONTH:
            return month(at.year, at.month, confidence)
        case Unit.QUARTER:
            return quarter(at.year, (at.month + 2) // 3)
        case Unit.YEAR:
            return year(at.year, confidence)
        case Unit.DECADE:
            return decade(at.year)


def near(make_year: "YearlyReading", reference: Reference) -> Reading | None:
    """Of a thing that comes every year: the latest begun by now, or the next not yet over."""
    order = (0, -1, -2, -3, -4) if reference.prefer is Prefer.PAST else (0, 1, 2, 3, 4)
    for offset in order:
        found = make_year(reference.now.year + offset)
        if found is None:
            continue
        if reference.prefer is Prefer.PAST and found.first <= reference.now:
            return found
        if reference.prefer is Prefer.FUTURE and found.last > reference.now:
            return found
    return None


class YearlyReading:
    """Makes the reading of one year; answers None for a year that lacks it (29 February)."""

    def __init__(self, month_number: int, day_number: int | None = None, confidence: float = 0.9) -> None:
        self._month = month_number
        self._day = day_number
        self._confidence = confidence

    def __call__(self, number: int) -> Reading | None:
        if not FIRST_YEAR <= number <= LAST_YEAR:
            return None
        if self._day is None:
            return month(number, self._month, self._confidence, floats=True)
        if self._day > monthrange(number, self._month)[1] or self._day < 1:
            return None
        return day(local(number, self._month, self._day), self._confidence, floats=True)
