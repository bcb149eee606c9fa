"""Finds the times that a text names and makes them instants: single dates, ranges, since, until, for.

Days and longer periods are calendar periods: they are written in UTC, as services/domain/instants.period
reads them, and the time zone only decides which day the reference is in. Clock times are true instants.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

from services.domain.dates import words as w
from services.domain.dates.calendar import (
    PRECISION_OF,
    Prefer,
    Reading,
    Reference,
    Unit,
    day,
    local,
    shift,
    whole,
)
from services.domain.dates.chinese import told_in_chinese
from services.domain.dates.chinese_words import HAN
from services.domain.dates.english_days import add_days, amounts
from services.domain.dates.english_periods import add_periods
from services.domain.dates.relations import Relation, Told, same_year
from services.domain.dates.rules import Rules
from services.domain.instants import Instant, Precision, instant, moment


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A time that a text names: `text[begin:finish]` means `[start, end)`; None is open.

    `precision` is that of `start` (or of `end` where there is no start), `end_precision` that of `end`.
    A RANGE ends at the first instant of its last period, as a stated end does.
    """

    begin: int
    finish: int
    text: str
    start: Instant | None
    end: Instant | None
    precision: Precision
    end_precision: Precision
    relation: Relation
    confidence: float

    @property
    def at(self) -> Instant | None:
        """The instant that stands for the expression: its start, or its end where it has only that."""
        return self.start if self.start is not None else self.end


@cache
def english() -> Rules:
    """The rules of English."""
    rules = Rules()
    add_days(rules)
    add_periods(rules)
    return rules


def find(
    text: str, reference: Instant, time_zone: str = "UTC", prefer: Prefer = Prefer.PAST
) -> list[TimeExpression]:
    """All times that a text names, in order, without overlaps. Raises ZoneInfoNotFoundError."""
    zone = ZoneInfo(time_zone)
    said = Reference(moment(reference).astimezone(zone).replace(tzinfo=None), prefer)
    found = _durations(text, said, english().find(text, said))
    if HAN.search(text):
        found = _merged([*told_in_chinese(text, said), *found])
    return [_final(text, item, zone) for item in found]


def _merged(items: list[Told]) -> list[Told]:
    """The longer of two that overlap, the first of two alike: each language reads a date in its own way."""
    kept: list[Told] = []
    for item in sorted(items, key=lambda item: item.begin - item.finish):
        if all(item.finish <= other.begin or other.finish <= item.begin for other in kept):
            kept.append(item)
    return sorted(kept, key=lambda item: item.begin)


def read(
    expression: str, reference: Instant, time_zone: str = "UTC", prefer: Prefer = Prefer.PAST
) -> TimeExpression | None:
    """The time that a whole expression means ("last January", "2024-03"), or None if it can't be read.

    A date of another language than English and Chinese is tried with dateparser.
    Raises ZoneInfoNotFoundError.
    """
    text = expression.strip()
    if not text:
        return None
    if exact := _iso_instant(text):
        return TimeExpression(
            0,
            len(text),
            text,
            exact,
            Instant(exact + 1),
            Precision.INSTANT,
            Precision.INSTANT,
            Relation.AT,
            1.0,
        )
    found = find(text, reference, time_zone, prefer)
    if len(found) == 1 and 2 * (found[0].finish - found[0].begin) >= len(text):
        return found[0]
    return None if found else _with_dateparser(text, reference, time_zone)


def _iso_instant(text: str) -> Instant | None:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*", text):
        return None
    try:
        return instant(datetime.fromisoformat(text))
    except ValueError:
        return None


def _with_dateparser(text: str, reference: Instant, time_zone: str) -> TimeExpression | None:
    """A written date of another language. What we refuse in English and Chinese nobody guesses."""
    if HAN.search(text) or not any(letter.isdigit() for letter in text) or len(text) > _MAX_FOREIGN:
        return None
    from dateparser.date import DateDataParser  # a second of imports that most texts don't need

    zone = ZoneInfo(time_zone)
    said = moment(reference).astimezone(zone).replace(tzinfo=None)
    settings = {
        "RELATIVE_BASE": said, "PREFER_DATES_FROM": "past", "RETURN_AS_TIMEZONE_AWARE": False,
        "PREFER_DAY_OF_MONTH": "first", "PREFER_MONTH_OF_YEAR": "first", "RETURN_TIME_AS_PERIOD": True,
    }  # fmt: skip
    parsed = DateDataParser(settings=settings).get_date_data(text)
    if parsed.date_obj is None or parsed.locale is None or parsed.locale.startswith(("en", "zh")):
        return None
    unit = Unit(parsed.period) if parsed.period in {"day", "week", "month", "year"} else Unit.DAY
    try:
        read = whole(parsed.date_obj.replace(tzinfo=None), unit, 0.5)
    except (OverflowError, ValueError):
        return None
    return _final(text, Told(0, len(text), read, None, Relation.AT), zone)


_MAX_FOREIGN = 60
"""Characters of a date in another language; longer texts are no dates."""


_BEFORE_FIRST = re.compile(
    r"(?:\b(from|between|since|until|till|up to|before|after|by|ever since"
    r"|starting(?: on| in| from)?|as of|through) +)(?:the +)?(?:on +|in +)?$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r"\s*,?\s*(?:to|until|till|through|and|[-–—]|up to)\s*(?:on |in |the )?\s*", re.IGNORECASE
)
_RELATIONS = {
    "since": Relation.SINCE, "ever since": Relation.SINCE, "from": Relation.SINCE, "as of": Relation.SINCE,
    "until": Relation.UNTIL, "till": Relation.UNTIL, "up to": Relation.UNTIL, "through": Relation.UNTIL,
    "before": Relation.BEFORE, "by": Relation.BEFORE, "after": Relation.AFTER,
}  # fmt: skip


def _durations(text: str, said: Reference, found: list[tuple[int, int, Reading]]) -> list[Told]:
    items = _relate(text, said, found)
    for match in _FOR.finditer(text):
        if any(match.start() < item.finish and item.begin < match.end() for item in items):
            continue
        parts = amounts(match["q"])
        if not parts:
            continue
        at = said.now
        try:
            for count, unit, _ in parts:
                at = shift(at, unit, -count)
        except (OverflowError, ValueError):
            continue
        unit = min((part[1] for part in parts), key=list(Unit).index)
        since = Reading(day(at).first, day(at).last, PRECISION_OF[unit], 0.7)
        items.append(Told(match.start(), match.end(), since, day(said.now), Relation.FOR))
    return sorted(items, key=lambda item: item.begin)


_FOR = re.compile(
    rf"(?:for|over) (?:about |almost |nearly |over |more than |around |the (?:last|past) )?"
    rf"(?P<q>{w.QUANTITY} {w.UNIT}(?: and {w.QUANTITY} {w.UNIT})?)(?: now)?(?!\w)(?! ago)",
    re.IGNORECASE,
)


def _relate(text: str, said: Reference, found: list[tuple[int, int, Reading]]) -> list[Told]:
    """Joins neighbours into ranges and reads the word before each."""
    items: list[Told] = _day_ranges(text, said)
    free = [
        item for item in found if all(item[1] <= other.begin or item[0] >= other.finish for other in items)
    ]
    position = 0
    while position < len(free):
        begin, finish, reading = free[position]
        before = _BEFORE_FIRST.search(text[:begin])
        word = before.group(1).lower() if before else _inner_word(text[begin:finish])
        start = before.start() if before else begin
        following = free[position + 1] if position + 1 < len(free) else None
        if following is not None and _joins(text[finish : following[0]], word):
            first, last = same_year(reading, following[2], said)
            items.append(Told(start, following[1], first, last, Relation.RANGE))
            position += 2
            continue
        position += 1
        items.append(_single(start, finish, reading, word))
    return items


def _inner_word(text: str) -> str:
    word = text.split(" ", 1)[0].lower()
    return word if word in {"by"} else ""


def _joins(gap: str, word: str) -> bool:
    if not _BETWEEN.fullmatch(gap):
        return False
    joiner = gap.strip(" ,").lower().split(" ")[0]
    return joiner != "and" or word == "between"


def _single(begin: int, finish: int, reading: Reading, word: str) -> Told:
    relation = Relation.SINCE if word.startswith("starting") else _RELATIONS.get(word, Relation.AT)
    if relation in {Relation.UNTIL, Relation.BEFORE}:
        return Told(begin, finish, None, reading, relation)
    return Told(begin, finish, reading, None, relation)


_DAY_RANGE = re.compile(
    rf"(?<!\w)(?:from |between )?(?:(?P<m>{w.MONTH}) (?:from |between )?)?"
    rf"(?P<a>{w.DAY}) ?(?:to|-|–|until|till|through|and) ?(?P<b>{w.DAY})"
    rf"(?:(?:,? (?:of )?(?:in )?(?:(?P<n>{w.MONTH})|(?P<w>{w.WHICH}) month))?"
    rf"(?:,? (?P<y>{w.YEAR}))?)(?![\w/-])",
    re.IGNORECASE,
)


def _day_ranges(text: str, said: Reference) -> list[Told]:
    """Ranges of days that share one month: "4-22 January 1995", "from 3 to 12 this month"."""
    found: list[Told] = []
    for match in _DAY_RANGE.finditer(text):
        if (match["m"] and match["n"]) or not (match["m"] or match["n"] or match["w"]):
            continue
        try:
            first, last = w.number_of(match["a"]), w.number_of(match["b"])
            at = _month_start(match, said)
            floats = match["y"] is None and match["w"] is None
            pair = (
                day(local(at.year, at.month, first), 0.9, floats=floats),
                day(local(at.year, at.month, last), 0.9, floats=floats),
            )
            if floats and said.prefer is Prefer.PAST and pair[1].first > said.now:
                pair = (pair[0].in_year(at.year - 1), pair[1].in_year(at.year - 1))
        except (ValueError, KeyError, OverflowError):
            continue
        if first < last:
            found.append(Told(match.start(), match.end(), *pair, Relation.RANGE))
    return found


def _month_start(match: re.Match[str], said: Reference) -> datetime:
    if match["w"]:
        word = match["w"].lower()
        step = -1 if re.fullmatch(w.PAST_WORD, word) else (1 if re.fullmatch(w.NEXT_WORD, word) else 0)
        return shift(said.today.replace(day=1), Unit.MONTH, step)
    year = w.year_of(match["y"]) if match["y"] else said.now.year
    return local(year, w.month_of(match["m"] or match["n"]))


def _final(text: str, item: Told, zone: ZoneInfo) -> TimeExpression:
    first, last = item.first, item.last
    start = _instant(first.first, first.precision, zone) if first else None
    if item.relation is Relation.AT and first:
        end: Instant | None = _instant(first.last, first.precision, zone)
        end_precision = first.precision
    else:
        end = _instant(last.first, last.precision, zone) if last else None
        end_precision = last.precision if last else Precision.INSTANT
    known = [reading for reading in (first, last) if reading]
    return TimeExpression(
        item.begin,
        item.finish,
        text[item.begin : item.finish],
        start,
        end,
        known[0].precision,
        end_precision,
        item.relation,
        min(reading.confidence for reading in known),
    )


def _instant(at: datetime, precision: Precision, zone: ZoneInfo) -> Instant:
    if precision is Precision.INSTANT:
        return instant(at.replace(tzinfo=zone))
    return instant(at.replace(tzinfo=UTC))
