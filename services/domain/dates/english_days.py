"""English dates of one day: written dates, weekdays, and days counted from now."""

import re
from calendar import monthrange
from datetime import datetime, timedelta
from re import Match

from services.domain.dates import words as w
from services.domain.dates.calendar import (
    Prefer,
    Reading,
    Reference,
    Unit,
    YearlyReading,
    day,
    local,
    near,
    shift,
    week,
    whole,
)
from services.domain.dates.rules import Rules

AMBIGUOUS = 0.6
"""Confidence in a date that people of another country read otherwise."""
_BEFORE = rf"(?:{w.WEEKDAY},? +)?"
_END = r"(?![/:\d]|[-.]\d)"


def add_days(rule: Rules) -> None:
    """Adds the rules of this module."""
    _written(rule)
    _numeric(rule)
    _weekdays(rule)
    _counted(rule)


def dated(text: str | None, month: int, day_number: int, reference: Reference) -> Reading | None:
    """The day of a month, in the year that was said or else the nearest one."""
    if text is None:
        return near(YearlyReading(month, day_number), reference)
    return day(local(w.year_of(text), month, day_number))


def _written(rule: Rules) -> None:
    year = rf"(?P<y>{w.YEAR}|{w.SPOKEN_YEAR})"

    @rule(rf"{_BEFORE}(?:the )?(?P<d>{w.DAY})[ .-]*(?:of )?[ ]?(?P<m>{w.MONTH})(?:,? *(?:of )?-?{year})?")
    def _day_month(found: Match[str], reference: Reference) -> Reading | None:
        return dated(found["y"], w.month_of(found["m"]), w.number_of(found["d"]), reference)

    month_day = rf"(?P<m>{w.MONTH})[ /-]*(?:the )?(?P<d>{w.DAY})"

    @rule(rf"{_BEFORE}{month_day}(?:,? *{year})?")
    def _month_day(found: Match[str], reference: Reference) -> Reading | None:
        return dated(found["y"], w.month_of(found["m"]), w.number_of(found["d"]), reference)

    @rule(r"(?P<m>jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|january|october)(?P<d>[12]?\d|3[01])" + _END)
    def _glued(found: Match[str], reference: Reference) -> Reading | None:
        return dated(None, w.month_of(found["m"]), int(found["d"]), reference)

    @rule(rf"(?P<y>\d{{4}})[-/ ](?P<m>{w.MONTH})[-/ ](?P<d>\d{{1,2}})")
    def _year_month_day(found: Match[str], reference: Reference) -> Reading | None:
        return dated(found["y"], w.month_of(found["m"]), int(found["d"]), reference)

    @rule(rf"(?P<n>{w.WEEKDAY}),? (?:the )?(?P<d>{w.ORDINAL})")
    def _weekday_the(found: Match[str], reference: Reference) -> Reading | None:
        sign = 1 if reference.prefer is Prefer.FUTURE else -1
        for away in (*range(32), *range(-1, -32, -1)):
            at = reference.today + timedelta(days=sign * away)
            if at.day == w.number_of(found["d"]) and at.weekday() == w.weekday_of(found["n"]):
                return day(at, 0.9)
        return None

    @rule(
        r"(?:on |for |by )?the (?P<d>\d{1,2}(?:st|nd|rd|th))"
        r"(?! [a-z]*(?:time|birthday|century|floor|grade|anniversary|street))"
    )
    def _the_day(found: Match[str], reference: Reference) -> Reading | None:
        number = w.number_of(found["d"])
        for months in range(4):
            at = shift(reference.today.replace(day=1), Unit.MONTH, -months)
            if number <= monthrange(at.year, at.month)[1] and at.replace(day=number) <= reference.now:
                return day(at.replace(day=number), AMBIGUOUS)
        return None

    @rule(rf"(?:the )?(?P<d>{w.ORDINAL}) (?:day )?of (?P<w>{w.WHICH}) month")
    def _day_of_month(found: Match[str], reference: Reference) -> Reading | None:
        at = shift(reference.today.replace(day=1), Unit.MONTH, which(found["w"]))
        return day(at.replace(day=w.number_of(found["d"])))


def _numeric(rule: Rules) -> None:
    @rule(r"(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})(?:T[\d:.]+(?:Z|[+-]\d{2}:?\d{2})?)?")
    def _iso(found: Match[str], _: Reference) -> Reading:
        return day(local(int(found["y"]), int(found["m"]), int(found["d"])))

    @rule(r"(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?:(?P=s)|,)(?P<y>\d{4}|\d{2})" + _END)
    def _three(found: Match[str], _: Reference) -> Reading:
        number, first, second = int(found["y"]), int(found["a"]), int(found["b"])
        full = number if number > 99 else w.two_digit_year(number)
        month_number, day_number = _order(first, second, by_day=found["s"] == ".")
        return day(local(full, month_number, day_number), AMBIGUOUS if max(first, second) <= 12 else 0.95)

    @rule(r"(?:on +)(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})" + _END + r"|(?P<c>\d{1,2})/(?P<e>\d{1,2})" + _END)
    def _two(found: Match[str], reference: Reference) -> Reading | None:
        first, second = int(found["a"] or found["c"]), int(found["b"] or found["e"])
        month_number, day_number = _order(first, second, by_day=False)
        return near(YearlyReading(month_number, day_number, AMBIGUOUS), reference)


def _order(first: int, second: int, *, by_day: bool) -> tuple[int, int]:
    """Month and day of two numbers: as Americans write them unless that is impossible or dots part them."""
    if first > 12 or (by_day and second <= 12):
        return second, first
    return first, second


def which(text: str) -> int:
    """-1, 0 or 1 for "last", "this" and "next" and their like."""
    word = text.lower()
    if word in {"last", "past", "previous", "prior"}:
        return -1
    return 1 if word in {"next", "coming", "upcoming", "following"} else 0


def _weekdays(rule: Rules) -> None:
    @rule(rf"(?:the |this )?(?P<w>{w.WHICH}) (?P<n>{w.WEEKDAY})")
    def _which_weekday(found: Match[str], reference: Reference) -> Reading:
        number, direction = w.weekday_of(found["n"]), which(found["w"])
        if direction < 0:  # the most recent one, whatever the week
            return day(_weekday_before(reference.today, number), 0.95)
        monday = week(reference.now).first + timedelta(days=7 * direction)
        return day(monday + timedelta(days=number), 0.8)

    @rule(
        rf"(?P<w>{w.WHICH}) week,? (?:on )?(?P<n>{w.WEEKDAY})"
        rf"|(?:on )?(?P<m>{w.WEEKDAY}) (?:of )?(?P<v>{w.WHICH}) week"
    )
    def _weekday_of_week(found: Match[str], reference: Reference) -> Reading:
        monday = week(reference.now).first + timedelta(days=7 * which(found["w"] or found["v"]))
        return day(monday + timedelta(days=w.weekday_of(found["n"] or found["m"])))

    @rule(rf"(?:on )?(?P<n>{w.WEEKDAY})s?")
    def _weekday(found: Match[str], reference: Reference) -> Reading | None:
        if found.group().lower() in {"sat", "sun", "mon", "wed", "on sun"} or found.group().endswith("s"):
            return None  # "on Fridays" is a habit, "sat" mostly a verb
        if re.search(rf"(?:{w.ORDINAL}|every|each) $", found.string[: found.start()], re.IGNORECASE):
            return None  # "the second Sunday" of what is not told
        number = w.weekday_of(found["n"])
        if reference.prefer is Prefer.PAST:
            return day(_weekday_before(reference.today, number), 0.85)
        ahead = (number - reference.today.weekday()) % 7 or 7
        return day(reference.today + timedelta(days=ahead), 0.8)

    @rule(
        rf"(?:the )?(?P<o>{w.ORDINAL}|last) (?P<n>{w.WEEKDAY}) (?:of|in) "
        rf"(?:(?P<m>{w.MONTH})(?:,? (?P<y>{w.YEAR}))?|(?P<w>{w.WHICH}) month)"
    )
    def _nth_weekday(found: Match[str], reference: Reference) -> Reading | None:
        if found["m"]:
            first = dated(found["y"], w.month_of(found["m"]), 1, reference)
            if first is None:
                return None
            start = first.first
        else:
            start = shift(reference.today.replace(day=1), Unit.MONTH, which(found["w"]))
        weekday = w.weekday_of(found["n"])
        if found["o"].lower() == "last":
            return day(_weekday_before(shift(start, Unit.MONTH, 1), weekday))
        at = start + timedelta(days=(weekday - start.weekday()) % 7 + 7 * (w.number_of(found["o"]) - 1))
        return day(at) if at.month == start.month else None


def _weekday_before(at: datetime, number: int) -> datetime:
    return at - timedelta(days=(at.weekday() - number - 1) % 7 + 1)


_NAMED_DAYS = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "earlier today": 0,
    "yesterday": -1, "last night": -1, "the day before yesterday": -2, "day before yesterday": -2,
    "tomorrow": 1, "tmrw": 1, "tmr": 1, "the day after tomorrow": 2, "day after tomorrow": 2,
    "the day after tmrw": 2, "the next day": 1, "this day": 0,
}  # fmt: skip
_PART = r"(?: (?:morning|afternoon|evening|night))?"


def _counted(rule: Rules) -> None:
    names = "|".join(sorted(_NAMED_DAYS, key=len, reverse=True))

    @rule(rf"(?P<n>{names}){_PART}")
    def _named(found: Match[str], reference: Reference) -> Reading:
        return day(reference.today + timedelta(days=_NAMED_DAYS[found["n"].lower()]))

    part = rf"{w.QUANTITY}[ -]{w.UNIT}"

    @rule(
        rf"(?:about |around |over |more than |almost |nearly )?(?P<q>{part}(?:(?:,? and |, | ){part})*)"
        r"(?: and a half)? (?P<d>ago|earlier|back|from now|later|from today)"
    )
    def _ago(found: Match[str], reference: Reference) -> Reading | None:
        forward = found["d"].lower() in {"from now", "later", "from today"}
        if found["d"].lower() == "back" and reference.prefer is Prefer.FUTURE:
            return None
        return moved(found["q"], reference.now, -1 if not forward else 1)

    @rule(rf"in (?P<q>(?:about )?{part})(?! of\b)(?! ago)")
    def _in(found: Match[str], reference: Reference) -> Reading | None:
        if reference.prefer is Prefer.PAST:
            return None  # "I learnt it in two days" is a duration
        return moved(found["q"].removeprefix("about "), reference.now, 1)

    @rule(rf"(?P<q>{part}) (?P<d>from|after|before) (?P<n>{names})")
    def _from_named(found: Match[str], reference: Reference) -> Reading | None:
        at = reference.today + timedelta(days=_NAMED_DAYS[found["n"].lower()])
        return moved(found["q"], at, -1 if found["d"].lower() == "before" else 1)

    @rule(r"(?:just )?the other (?P<n>day|week|night)")
    def _other(found: Match[str], reference: Reference) -> Reading:
        back = 10 if found["n"].lower() == "week" else 3
        return week(reference.today - timedelta(days=back), 0.4)


def amounts(text: str) -> list[tuple[int, Unit, bool]]:
    """The counts and units of "2 years and a few days"; the flag tells that a count is vague."""
    found: list[tuple[int, Unit, bool]] = []
    for match in re.finditer(rf"(?P<q>{w.QUANTITY})[ -](?P<u>{w.UNIT})", text, re.IGNORECASE):
        name = match["u"].lower().rstrip("s")
        count, vague = w.number_of(match["q"]), w.is_vague(match["q"])
        if name == "fortnight":
            found.append((2 * count, Unit.WEEK, vague))
        else:
            found.append((count, Unit("minute" if name == "min" else name), vague))
    return found


def moved(text: str, at: datetime, sign: int) -> Reading | None:
    """The period that lies the told amounts before or after `at`, as fine as the finest unit told."""
    parts = amounts(text)
    if not parts:
        return None
    for count, unit, _ in parts:
        at = shift(at, unit, sign * count)
    finest = min((unit for _, unit, _ in parts), key=list(Unit).index)
    vague = any(flag for _, _, flag in parts)
    return whole(at, finest, 0.6 if vague else 0.9)
