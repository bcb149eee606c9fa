"""Times as models write them: ISO-like text to a StatedTime, and instants back to text.

`2025`, `2025-03`, `2025-03-09`, `2025-W10`, `2025-Q3` (also `Q3 2025`), and full timestamps. Anything else
stays text without an instant: relative dates are resolved elsewhere, against what the turn says.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime

from services.domain.facts import StatedTime
from services.domain.instants import BEGINNING, FOREVER, Instant, Precision, instant, moment

_DAY_MICROSECONDS = 86_400_000_000
_OPEN = frozenset({"", "null", "none", "n/a", "unknown", "open", "present", "now", "ongoing", "current"})
"""What models write where they mean that no time is stated."""


def _day(year: int, month: int = 1, day: int = 1) -> date:
    return date(year, month, day)


def _week(year: int, week: int) -> date:
    return date.fromisocalendar(year, week, 1)


def _quarter(year: int, quarter: int) -> date:
    return date(year, 3 * quarter - 2, 1)


_FORMS: tuple[tuple[re.Pattern[str], Precision, Callable[..., date]], ...] = (
    (re.compile(r"(\d{4})"), Precision.YEAR, _day),
    (re.compile(r"(\d{4})-(\d{1,2})"), Precision.MONTH, _day),
    (re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})"), Precision.DAY, _day),
    (re.compile(r"(\d{4})-?[Ww](\d{1,2})"), Precision.WEEK, _week),
    (re.compile(r"(\d{4})[- ]?[Qq]([1-4])"), Precision.QUARTER, _quarter),
    (re.compile(r"[Qq]([1-4])[- ](\d{4})"), Precision.QUARTER, lambda quarter, year: _quarter(year, quarter)),
)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?\s?([Zz]|[+-]\d{2}:?\d{2})?")


def parse_stated(text: str | None) -> StatedTime | None:
    """What `text` states, or None where it states nothing. A naive timestamp is read as UTC. Never raises."""
    words = (text or "").strip()
    if words.lower() in _OPEN:
        return None
    try:
        for form, precision, make in _FORMS:
            if match := form.fullmatch(words):
                return StatedTime(words, _midnight(make(*map(int, match.groups()))), precision)
        if _TIMESTAMP.fullmatch(words):
            return _timestamp(words)
    except (ValueError, OverflowError):
        pass  # shaped like a date that the calendar lacks: it stays text
    return StatedTime(words)


def _timestamp(words: str) -> StatedTime:
    at = instant(datetime.fromisoformat(words.upper().replace(" Z", "Z")))
    if not BEGINNING <= at <= FOREVER:
        return StatedTime(words)
    # Models write midnight where they mean the day; prompts show a day so too.
    return StatedTime(words, at, Precision.DAY if _is_midnight(at) else Precision.INSTANT)


def show(at: Instant) -> str:
    """An instant as prompts show it: a day at midnight UTC, else a full timestamp."""
    shown = moment(at)
    return shown.date().isoformat() if _is_midnight(at) else shown.isoformat().replace("+00:00", "Z")


def iso(time: StatedTime) -> str:
    """One text for one stated time: its ISO form, or its own words where it has no instant."""
    if time.at is None:
        return " ".join(time.text.split())
    day = moment(time.at).date()
    text = day.isoformat()
    match time.precision:
        case Precision.YEAR:
            return text[:4]
        case Precision.QUARTER:
            return f"{text[:4]}-Q{(day.month + 2) // 3}"
        case Precision.MONTH:
            return text[:7]
        case Precision.WEEK:
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case Precision.DAY:
            return text
        case Precision.INSTANT:
            return show(time.at)


def _is_midnight(at: Instant) -> bool:
    return at % _DAY_MICROSECONDS == 0


def _midnight(day: date) -> Instant:
    return instant(datetime(day.year, day.month, day.day, tzinfo=UTC))
