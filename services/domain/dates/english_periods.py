"""English dates of more than a day: weeks, weekends, months, quarters, seasons, years, holidays."""

import re
from datetime import datetime, timedelta
from re import Match

from services.domain.dates import words as w
from services.domain.dates.calendar import (
    PRECISION_OF,
    Prefer,
    Reading,
    Reference,
    Unit,
    YearlyReading,
    day,
    decade,
    local,
    month,
    near,
    quarter,
    season,
    shift,
    week,
    weekend,
    whole,
    year,
)
from services.domain.dates.english_days import amounts, dated, moved, which
from services.domain.dates.rules import Rules
from services.domain.instants import Precision


def _after(words: str) -> str:
    """Alternatives of look-behinds: what follows one of these words."""
    return "|".join(rf"(?<=\b{word} )" for word in words.split())


_YEARLIKE = rf"(?:{w.YEAR}|{w.SPOKEN_YEAR})"


_ABSOLUTE = (
    rf"(?:(?P<ad>{w.DAY}) ?(?:of )?(?P<am>{w.MONTH})|(?P<bm>{w.MONTH}) (?:the )?(?P<bd>{w.DAY}))"
    rf"(?:,? (?P<ay>{w.YEAR}))?"
)


def add_periods(rule: Rules) -> None:
    """Adds the rules of this module."""
    _named(rule)
    _weeks(rule)
    _months(rule)
    _quarters(rule)
    _years(rule)
    _holidays(rule)
    _parts(rule)


def _named(rule: Rules) -> None:
    unit = r"(?P<u>day|week|month|quarter|year|decade)"

    @rule(rf"(?:the |this )?(?P<w>{w.WHICH}) {unit}")
    def _which(found: Match[str], reference: Reference) -> Reading:
        named = Unit(found["u"].lower())
        return whole(shift(reference.now, named, which(found["w"])), named, 0.95)

    @rule(rf"the {unit} (?P<b>before last|after next)")
    def _over_next(found: Match[str], reference: Reference) -> Reading:
        named = Unit(found["u"].lower())
        return whole(shift(reference.now, named, -2 if "last" in found["b"].lower() else 2), named)

    @rule(
        r"(?:during |over |for |in |within )?(?:the |these )?"
        rf"(?P<w>last|past|previous|next) (?P<q>{w.QUANTITY} {w.UNIT})"
    )
    def _rolling(found: Match[str], reference: Reference) -> Reading | None:
        parts = amounts(found["q"])
        sign = 1 if found["w"].lower() == "next" else -1
        at = reference.now
        for count, counted, _ in parts:
            at = shift(at, counted, sign * count)
        first, last = sorted((day(at).first, reference.today))
        if sign > 0:
            first, last = first + timedelta(days=1), last + timedelta(days=1)
        return Reading(first, last, PRECISION_OF[parts[-1][1]], 0.7) if parts else None


def _weeks(rule: Rules) -> None:
    @rule(rf"(?:the |this )?(?P<w>{w.WHICH}|the) weekend")
    def _weekend(found: Match[str], reference: Reference) -> Reading:
        word = found["w"].lower()
        if word == "the":
            return weekend(reference.now - timedelta(days=7 if reference.prefer is Prefer.PAST else 0), 0.7)
        return weekend(reference.now + timedelta(days=7 * which(word)))

    @rule(rf"(?P<q>{w.QUANTITY}) (?:weekends|(?P<n>{w.WEEKDAY_NAME})s) ago")
    def _weekends_ago(found: Match[str], reference: Reference) -> Reading:
        count = w.number_of(found["q"])
        if found["n"] is None:
            return weekend(reference.now - timedelta(days=7 * count))
        number = w.weekday_of(found["n"])
        back = (reference.today.weekday() - number - 1) % 7 + 1
        return day(reference.today - timedelta(days=back + 7 * (count - 1)))

    @rule(rf"(?:the )?(?P<k>week(?:end)?) of (?:the )?(?P<a>{_ABSOLUTE})")
    def _week_of(found: Match[str], reference: Reference) -> Reading | None:
        at = _absolute(found, reference)
        if at is None:
            return None
        return week(at.first) if found["k"].lower() == "week" else weekend(at.first)

    @rule(
        rf"(?:the )?(?P<o>first|second|third|fourth|last) (?P<k>week(?:end)?) (?:of|in) "
        rf"(?:(?P<m>{w.MONTH})(?:,? (?P<y>{w.YEAR}))?|(?P<z>{w.YEAR})|(?P<w>{w.WHICH}) (?P<u>month|year))"
    )
    def _nth_week(found: Match[str], reference: Reference) -> Reading | None:
        start = _whole_of(found, reference)
        if start is None:
            return None
        if found["k"].lower() == "weekend":
            return _nth_weekend(start, found["o"].lower())
        if found["o"].lower() == "last":
            return week(start.last - timedelta(days=4), 0.8)
        # a week belongs to the month that has its Thursday
        return week(start.first + timedelta(days=3 + 7 * (w.number_of(found["o"]) - 1)), 0.8)


def _nth_weekend(start: Reading, ordinal: str) -> Reading:
    """A weekend belongs to the month or year that has its Saturday."""
    if ordinal == "last":
        return weekend(start.last - timedelta(days=(start.last.weekday() - 6) % 7 or 7), 0.8)
    first = start.first + timedelta(days=(5 - start.first.weekday()) % 7)
    return weekend(first + timedelta(days=7 * (w.number_of(ordinal) - 1)), 0.8)


def _month(name: str, year_text: str | None, reference: Reference) -> Reading | None:
    number = w.month_of(name)
    if year_text is None:
        return near(YearlyReading(number), reference)
    return month(w.year_of(year_text), number)


def _months(rule: Rules) -> None:
    @rule(rf"(?P<m>{w.MONTH}),? ?(?:of |in )?(?P<y>{_YEARLIKE})|(?P<z>\d{{4}})[ ,]+(?P<n>{w.MONTH})")
    def _month_year(found: Match[str], reference: Reference) -> Reading | None:
        return _month(found["m"] or found["n"], found["y"] or found["z"], reference)

    @rule(
        r"(?P<y>(?:19|20|21)\d{2}) ?[-/.] ?(?P<m>0?[1-9]|1[0-2])(?![-/.\d])"
        r"|(?P<n>0?[1-9]|1[0-2]) ?[-/] ?(?P<z>(?:19|20|21)\d{2})(?![-/.\d])"
    )
    def _numbers(found: Match[str], _: Reference) -> Reading:
        return month(int(found["y"] or found["z"]), int(found["m"] or found["n"]))

    @rule(rf"(?P<w>{w.WHICH}) (?P<m>{w.MONTH})")
    def _which_month(found: Match[str], reference: Reference) -> Reading:
        number, direction, now = w.month_of(found["m"]), which(found["w"]), reference.now
        if direction == 0:
            return month(now.year, number)
        if direction < 0:  # the most recent one that is over
            return month(now.year - (number >= now.month), number, 0.9)
        return month(now.year + (number <= now.month), number, 0.9)

    @rule(rf"(?P<m>{w.MONTH}),? (?:of )?(?P<w>{w.WHICH}) year")
    def _month_which(found: Match[str], reference: Reference) -> Reading:
        return month(reference.now.year + which(found["w"]), w.month_of(found["m"]))

    @rule(
        rf"(?:{_after('in since until till from to by during before after and of through around between')}|^)"
        rf"(?P<m>{w.MONTH})"
        r"|(?P<n>January|February|April|June|July|August|September|October|November|December)"
    )
    def _bare(found: Match[str], reference: Reference) -> Reading | None:
        name = found["m"] or found["n"]
        if re.match(r" \d{1,2}(?![\d:])", found.string[found.end() :]):
            return None  # "Feb 30" is no day, and no February either
        if name.lower() == "may" and name != "May":
            return None
        if name.islower() and name in {"march", "mar", "sun", "dec", "sep", "august", "april", "june"}:
            return None
        return _month(name, None, reference)


def _quarters(rule: Rules) -> None:
    @rule(
        rf"(?:(?:Q(?P<q>[1-4])|(?:the )?(?P<o>first|second|third|fourth|1st|2nd|3rd|4th) quarter)"
        rf"(?:,? (?:of )?(?:(?P<y>{_YEARLIKE})|(?P<w>{w.WHICH}) year))?)|(?P<z>\d{{4}})[ -]?Q(?P<r>[1-4])"
    )
    def _quarter(found: Match[str], reference: Reference) -> Reading:
        number = int(found["q"] or found["r"] or 0) or w.number_of(found["o"])
        if text := found["y"] or found["z"]:
            return quarter(w.year_of(text), number)
        if found["w"]:
            return quarter(reference.now.year + which(found["w"]), number)
        this = quarter(reference.now.year, number)
        late = reference.prefer is Prefer.PAST and this.first > reference.now
        return quarter(reference.now.year - late, number)

    @rule(
        r"(?:H(?P<h>[12])|(?:the )?(?P<o>first|second) half)(?: of)?,? "
        rf"(?:(?P<y>{w.YEAR})|(?P<w>{w.WHICH}) year)"
        r"|(?P<z>(?:19|20)\d{2}) ?H(?P<k>[12])"
    )
    def _half(found: Match[str], reference: Reference) -> Reading:
        number = int(found["h"] or found["k"] or 0) or w.number_of(found["o"])
        told = found["y"] or found["z"]
        first = local(w.year_of(told) if told else reference.now.year + which(found["w"]), 6 * number - 5)
        return Reading(first, shift(first, Unit.MONTH, 6), Precision.QUARTER, 0.9)

    @rule(
        rf"(?:(?P<w>{w.WHICH}|the) )?(?P<s>spring|summer|autumn|fall|winter)(?! of (?!{_YEARLIKE}))"
        rf"(?:,? (?:of )?(?P<y>{_YEARLIKE}|(?P<v>{w.WHICH}) year))?"
    )
    def _season(found: Match[str], reference: Reference) -> Reading | None:
        return _season_of(found, reference)


def _season_of(found: Match[str], reference: Reference) -> Reading | None:
    name, now = found["s"].lower(), reference.now
    if found["v"]:
        return season(now.year + which(found["v"]), name)
    if found["y"]:
        return season(w.year_of(found["y"]), name, 0.8)
    if found["w"] is None:
        return None  # "fall" and "spring" are verbs, and "in summer" a habit
    word = found["w"].lower()
    years = [season(now.year + offset, name) for offset in (-2, -1, 0, 1)]
    if word != "the" and which(word) > 0:
        return next(item for item in years if item.first > now)
    if word == "the" and reference.prefer is Prefer.FUTURE:
        return next(item for item in years if item.last > now)
    if word != "the" and which(word) == 0:
        return next(item for item in years if item.last > now)
    started = [item for item in years if (item.last if word != "the" else item.first) <= now]
    return started[-1]


_TENS = {"forties": 40, "fifties": 50, "sixties": 60, "seventies": 70, "eighties": 80, "nineties": 90}


def _years(rule: Rules) -> None:
    before = _after(
        "in since until till by from to of during before after around circa early late mid and through year "
        "between throughout"
    )

    @rule(
        rf"(?:{before}|^)(?P<y>{_YEARLIKE})"
        r"(?! ?(?:people|users|times|dollars|lines|rows|items|percent|%|km|miles))"
    )
    def _year(found: Match[str], _: Reference) -> Reading:
        return year(w.year_of(found["y"]), 0.95)

    @rule(r"(?P<a>(?:19|20)\d{2})(?=[-–](?:19|20)\d{2}(?!\d))|(?<=[-–])(?P<b>(?:19|20)\d{2})(?!\d)")
    def _year_of_range(found: Match[str], _: Reference) -> Reading:
        return year(int(found["a"] or found["b"]), 0.8)

    @rule(
        r"the (?P<y>(?:1[5-9]|20)\d0)'?s|the '?(?P<z>[2-9]0)'?s"
        rf"|the (?:nineteen[- ])?(?P<n>{'|'.join(_TENS)})"
    )
    def _decade(found: Match[str], _: Reference) -> Reading:
        if found["n"]:
            return decade(1900 + _TENS[found["n"].lower()])
        return decade(int(found["y"]) if found["y"] else 1900 + int(found["z"]))


_HOLIDAYS = {
    "new year's day": (1, 1), "new years day": (1, 1), "valentine's day": (2, 14), "valentines day": (2, 14),
    "independence day": (7, 4), "the fourth of july": (7, 4), "halloween": (10, 31),
    "christmas eve": (12, 24), "christmas day": (12, 25), "christmas": (12, 25), "xmas": (12, 25),
    "boxing day": (12, 26), "new year's eve": (12, 31), "new years eve": (12, 31),
}  # fmt: skip


def _holidays(rule: Rules) -> None:
    names = "|".join(sorted(_HOLIDAYS, key=len, reverse=True))

    @rule(
        rf"(?:(?P<w>{w.WHICH}) )?(?P<h>{names}|thanksgiving)"
        rf"(?:,? (?:in |of )?(?P<y>{w.YEAR}|(?P<v>{w.WHICH}) year))?"
    )
    def _holiday(found: Match[str], reference: Reference) -> Reading | None:
        name = found["h"].lower()
        if found["v"]:
            return _holiday_in(name, reference.now.year + which(found["v"]))
        if found["y"]:
            return _holiday_in(name, w.year_of(found["y"]))
        ahead = found["w"] is not None and which(found["w"]) > 0
        for offset in (0, 1) if ahead or reference.prefer is Prefer.FUTURE else (0, -1):
            at = _holiday_in(name, reference.now.year + offset)
            if (at.first > reference.today) == (ahead or reference.prefer is Prefer.FUTURE):
                return at
        return None


def _holiday_in(name: str, number: int) -> Reading:
    if name == "thanksgiving":  # the fourth Thursday of November
        first = local(number, 11)
        return day(first + timedelta(days=(3 - first.weekday()) % 7 + 21), 0.7)
    return day(local(number, *_HOLIDAYS[name]), 0.9)


_THIRDS = {"early": 0, "beginning of": 0, "start of": 0, "mid": 1, "middle of": 1, "late": 2, "end of": 2}


def _parts(rule: Rules) -> None:
    @rule(
        rf"(?:the )?(?P<p>early|mid|late|beginning of|start of|middle of|end of)[ -](?:in )?(?:the )?"
        rf"(?:(?P<m>{w.MONTH})(?:,? (?P<y>{w.YEAR}))?|(?P<z>{w.YEAR})|(?P<w>{w.WHICH}) (?P<u>month|year))"
    )
    def _part(found: Match[str], reference: Reference) -> Reading | None:
        whole_period = _whole_of(found, reference)
        if whole_period is None:
            return None
        third = _THIRDS[found["p"].lower()]
        first = whole_period.first
        if whole_period.precision is Precision.MONTH:
            start = first + timedelta(days=10 * third)
            last = whole_period.last if third == 2 else start + timedelta(days=10)
            return Reading(start, last, Precision.WEEK, 0.8, whole_period.floats)
        start = shift(first, Unit.MONTH, 4 * third)
        return Reading(start, shift(start, Unit.MONTH, 4), Precision.QUARTER, 0.8)

    unit = r"(?P<u>day|week|weekend|month|year)"

    @rule(rf"(?P<q>{w.QUANTITY}) weekends? (?P<d>before|after) (?P<a>{_ABSOLUTE})")
    def _weekends_from(found: Match[str], reference: Reference) -> Reading | None:
        anchor = _absolute(found, reference)
        if anchor is None:
            return None
        sign = 1 if found["d"].lower() == "after" else -1
        near_by = _beside_weekend(anchor.first, sign)
        return weekend(near_by.first + timedelta(days=7 * sign * (w.number_of(found["q"]) - 1)))

    @rule(rf"(?P<q>{w.QUANTITY} {w.UNIT}) (?P<d>before|after|prior to) (?P<a>{_ABSOLUTE})")
    def _counted_from(found: Match[str], reference: Reference) -> Reading | None:
        anchor = _absolute(found, reference)
        return moved(found["q"], anchor.first, 1 if found["d"].lower() == "after" else -1) if anchor else None

    @rule(rf"the (?:{unit}|(?P<n>{w.WEEKDAY})) (?P<d>before|after) (?P<a>{_ABSOLUTE})")
    def _beside(found: Match[str], reference: Reference) -> Reading | None:
        anchor = _absolute(found, reference)
        return _next_to(anchor.first, found, 1 if found["d"].lower() == "after" else -1) if anchor else None


def _absolute(found: Match[str], reference: Reference) -> Reading | None:
    return dated(
        found["ay"],
        w.month_of(found["am"] or found["bm"]),
        w.number_of(found["ad"] or found["bd"]),
        reference,
    )


def _next_to(anchor: datetime, found: Match[str], sign: int) -> Reading:
    if found["n"]:
        number = w.weekday_of(found["n"])
        distance = (number - anchor.weekday()) * sign % 7 or 7
        return day(anchor + timedelta(days=sign * distance))
    name = found["u"].lower()
    if name == "weekend":
        return _beside_weekend(anchor, sign)
    return whole(shift(anchor, Unit(name), sign), Unit(name))


def _beside_weekend(anchor: datetime, sign: int) -> Reading:
    saturday = weekend(anchor).first
    back = 7 if sign < 0 and saturday >= anchor else 0
    return weekend(saturday + timedelta(days=-back if sign < 0 else 7 * (saturday <= anchor)))


def _whole_of(found: Match[str], reference: Reference) -> Reading | None:
    if found["m"]:
        return _month(found["m"], found["y"], reference)
    if found["z"]:
        return year(w.year_of(found["z"]))
    unit = Unit(found["u"].lower())
    return whole(shift(reference.now, unit, which(found["w"])), unit)
