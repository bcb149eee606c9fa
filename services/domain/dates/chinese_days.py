"""Chinese dates of one day: written dates, weekdays, days counted from now, holidays."""

from calendar import monthrange
from datetime import datetime, timedelta
from functools import cache
from re import Match
from typing import Protocol

from services.domain.dates import chinese_words as w
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
    weekend,
    whole,
)
from services.domain.dates.rules import Rules

AMBIGUOUS = 0.6
_NO_ERA = r"(?:(?<![\u4e00-\u9fff\d])|(?<=[在于从自到至是我他她们]))"
YEAR = rf"(?:(?P<y>{w.YEAR}|{_NO_ERA}\d\d|{w.SHORT_YEAR}) ?年|(?P<r>{w.YEAR_WORD}))的? ?"
"""A year that something finer follows; only there do two digits name one, unless an emperor counted it."""
MAYBE_YEAR = rf"(?:{YEAR}|(?<!年)(?<!年 ))"
"""A year, or none: what follows a year that can't be read is no date of a year near now."""


def add_days(rule: Rules) -> None:
    """Adds the rules of this module."""
    _written(rule)
    _numeric(rule)
    _weekdays(rule)
    _counted(rule)
    _holidays(rule)


def year_in(found: Match[str], reference: Reference) -> int | None:
    """The year that a match of YEAR told, or None where none was."""
    if found["y"]:
        return w.year_of(found["y"])
    return reference.now.year + w.YEAR_WORDS[found["r"]] if found["r"] else None


def month_in(text: str, reference: Reference) -> datetime:
    """The first day of `上个月`, `本月`, `下下个月`."""
    return shift(reference.today.replace(day=1), Unit.MONTH, w.step_of(text))


def _written(rule: Rules) -> None:
    day_of = rf"(?P<d>{w.DAY}) ?(?:日|号)"
    bare = rf"(?P<e>{w.DAY})(?![\d日号个年天周月分点小以多月岁]| ?(?:日|号))"
    weekday = rf"(?:,|，| |（|\()?(?:{w.WEEK}{w.WEEKDAY})?"

    @rule(rf"{MAYBE_YEAR}(?P<m>{w.MONTH}) ?月(?:份的?)? ?(?:{day_of}|{bare}){weekday}")
    def _month_day(found: Match[str], reference: Reference) -> Reading | None:
        number, month, year = (
            w.number_of(found["d"] or found["e"]),
            w.number_of(found["m"]),
            year_in(found, reference),
        )
        if year is None:
            return near(YearlyReading(month, number), reference)
        return day(local(year, month, number))

    @rule(rf"(?:(?P<r>{w.YEAR_WORD})的?)?(?P<w>{w.WHICH})个?月的?{day_of}")
    def _of_month(found: Match[str], reference: Reference) -> Reading:
        first = month_in(found["w"], reference)
        first = shift(first, Unit.YEAR, w.YEAR_WORDS[found["r"]] if found["r"] else 0)
        return day(first.replace(day=w.number_of(found["d"])))

    @rule(
        rf"(?<![第\d一二三四五六七八九十月])(?P<d>{w.DAY})(?:日|号(?![线楼院室门桌床机车馆厅球位选店厂人手坑码召码称令]))(?![内间后前])"
    )
    def _day_alone(found: Match[str], reference: Reference) -> Reading | None:
        number, sign = w.number_of(found["d"]), 1 if reference.prefer is Prefer.FUTURE else -1
        for months in range(4):
            at = shift(reference.today.replace(day=1), Unit.MONTH, sign * months)
            if number <= monthrange(at.year, at.month)[1]:
                met = at.replace(day=number)
                if (met <= reference.today) if sign < 0 else (met >= reference.today):
                    return day(met, AMBIGUOUS)
        return None

    @rule(
        rf"(?:农历|阴历|旧历)?{MAYBE_YEAR}(?:农历|阴历|旧历)?(?P<m>正|腊|冬|{w.MONTH})月(?P<d>初[一二三四五六七八九十]|十[一二三四五六七八九]|二十|廿[一二三四五六七八九]|三十)"
    )
    def _lunar(found: Match[str], reference: Reference) -> Reading | None:
        text = found.group()
        if not (
            found["d"].startswith(("初", "廿"))
            or found["m"] in "正腊冬"
            or text[0] in "农阴旧"
            or "历" in text
        ):
            return None
        month = {"正": 1, "冬": 11, "腊": 12}.get(found["m"]) or w.number_of(found["m"])
        return _lunar_day(
            year_in(found, reference), month, w.number_of(found["d"].removeprefix("初")), reference
        )


def _numeric(rule: Rules) -> None:
    @rule(
        r"(?<![A-Za-z\d/.-])(?P<y>[12]\d{3})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})(?![A-Za-z\d/-]|\.\d)"
    )
    def _iso(found: Match[str], _: Reference) -> Reading:
        return day(local(int(found["y"]), int(found["m"]), int(found["d"])))


def weekday_before(today: datetime, number: int) -> datetime:
    """The latest such weekday before today."""
    return today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)


def _weekdays(rule: Rules) -> None:
    name = rf"{w.WEEK}(?P<n>{w.WEEKDAY})"

    @rule(rf"(?P<w>{w.WHICH})个?{name}")
    def _of_week(found: Match[str], reference: Reference) -> Reading:
        monday = week(reference.now).first + timedelta(days=7 * w.step_of(found["w"]))
        return day(monday + timedelta(days=w.WEEKDAYS[found["n"]]), 0.95)

    @rule(rf"(?P<w>{w.WHICH})个?(?:周末|星期末|礼拜末)")
    def _weekend(found: Match[str], reference: Reference) -> Reading:
        return weekend(reference.now + timedelta(days=7 * w.step_of(found["w"])))

    # "周一到周五" and "每周一" are habits.
    @rule(
        rf"(?<![到至和及、与每逢各]){name}"
        rf"(?!(?:到|至|和|及|、|与|-|~){w.WEEK}|(?:、|和|到|至){w.WEEKDAY}|都|[一二三四五六日天])"
    )
    def _bare(found: Match[str], reference: Reference) -> Reading:
        number = w.WEEKDAYS[found["n"]]
        if reference.prefer is Prefer.PAST:
            return day(weekday_before(reference.today, number), 0.8)
        return day(reference.today + timedelta(days=(number - reference.today.weekday()) % 7 or 7), 0.8)

    @rule(rf"{MAYBE_YEAR}(?P<m>{w.MONTH})月(?:份)?的?(?P<o>第[一二三四五1-5]|最后一)个{name}")
    def _nth(found: Match[str], reference: Reference) -> Reading | None:
        year, month, number = year_in(found, reference), w.number_of(found["m"]), w.WEEKDAYS[found["n"]]
        start = near(YearlyReading(month, 1), reference) if year is None else day(local(year, month, 1))
        if start is None:
            return None
        first = start.first
        if found["o"].startswith("最"):
            return day(weekday_before(shift(first, Unit.MONTH, 1), number), 0.9)
        met = first + timedelta(days=(number - first.weekday()) % 7 + 7 * (w.number_of(found["o"][1]) - 1))
        return day(met, 0.9) if met.month == month else None


_NAMED = {
    "今天": 0, "今日": 0, "今早": 0, "今晨": 0, "今晚": 0, "今夜": 0,
    "昨天": -1, "昨日": -1, "昨晚": -1, "昨夜": -1, "昨早": -1, "前天": -2, "前日": -2, "前晚": -2,
    "大前天": -3, "明天": 1, "明日": 1, "明早": 1, "明晚": 1, "后天": 2, "大后天": 3,
}  # fmt: skip
_PART = r"(?:的?(?:早上|早晨|清晨|凌晨|上午|中午|下午|傍晚|晚上|夜里|半夜))?"


def _counted(rule: Rules) -> None:
    names = "|".join(sorted(_NAMED, key=len, reverse=True))

    @rule(rf"(?<![大之])(?P<n>{names}){_PART}(?![性的]?(?:免疫|形成|努力|缺陷)|性)")
    def _named(found: Match[str], reference: Reference) -> Reading:
        return day(reference.today + timedelta(days=_NAMED[found["n"]]))

    @rule(rf"(?:大约|大概|差不多|约|近|将近|快)?{w.QUANTITY}(?:之|以)?前")
    def _ago(found: Match[str], reference: Reference) -> Reading | None:
        return _moved(found, reference, -1)

    @rule(rf"(?:再过|过)?{w.QUANTITY}(?:之后|以后|后)")
    def _later(found: Match[str], reference: Reference) -> Reading | None:
        if reference.prefer is Prefer.PAST:
            return None  # "三年后他搬走了": after what was told before
        return _moved(found, reference, 1)


def _moved(found: Match[str], reference: Reference, sign: int) -> Reading | None:
    if found["v"] == "日":
        return None
    count, unit, vague = w.amount(found)
    return whole(shift(reference.now, unit, sign * count), unit, AMBIGUOUS if vague else 0.9)


_HOLIDAYS = {
    "元旦": (1, 1), "情人节": (2, 14), "妇女节": (3, 8), "三八节": (3, 8), "愚人节": (4, 1), "劳动节": (5, 1),
    "五一": (5, 1), "五四青年节": (5, 4), "青年节": (5, 4), "六一": (6, 1), "儿童节": (6, 1),
    "建军节": (8, 1), "教师节": (9, 10), "国庆": (10, 1), "万圣夜": (10, 31), "双十一": (11, 11),
    "光棍节": (11, 11), "双11": (11, 11), "双十二": (12, 12),
    "平安夜": (12, 24), "圣诞": (12, 25), "跨年夜": (12, 31),
}  # fmt: skip
_LUNAR_HOLIDAYS = {
    "春节": (1, 1), "大年初一": (1, 1), "元宵": (1, 15),
    "端午": (5, 5), "七夕": (7, 7), "中秋": (8, 15), "重阳": (9, 9),
    "除夕": (13, 1), "大年三十": (13, 1),
}  # fmt: skip
"""Months of the Chinese calendar; New Year's Eve is the day before the first of the next year."""


def _holidays(rule: Rules) -> None:
    names = "|".join(sorted((*_HOLIDAYS, *_LUNAR_HOLIDAYS), key=len, reverse=True))
    tail = r"(?:节)?(?:那天|当天|期间|假期|长假|黄金周|前夕|的?时候)?"

    @rule(
        rf"(?:{YEAR}|(?P<w>上个|上一个|刚过去的|下个|下一个)|(?<=[在于从自到至])|(?=(?:{names})节?(?:那天|当天|的?时候)))"
        rf"(?P<h>{names}){tail}"
    )
    def _holiday(found: Match[str], reference: Reference) -> Reading | None:
        year, name = year_in(found, reference), found["h"]
        if year is not None:
            return _holiday_in(name, year)
        ahead = reference.prefer is Prefer.FUTURE or (found["w"] or "").startswith("下")
        for offset in (-1, 0, 1) if ahead else (1, 0, -1):
            at = _holiday_in(name, reference.now.year + offset)
            if at is not None and (at.first > reference.today if ahead else at.first <= reference.today):
                return at
        return None


def _holiday_in(name: str, year: int) -> Reading | None:
    if name in _HOLIDAYS:
        return day(local(year, *_HOLIDAYS[name]), 0.9)
    month, number = _LUNAR_HOLIDAYS[name]
    if month == 13:
        # The Eve of the year is named after the year that it opens as often as after the one that it closes.
        return day(_solar(year, 1, 1) - timedelta(days=1), AMBIGUOUS)
    return day(_solar(year, month, number), 0.9)


def _lunar_day(year: int | None, month: int, number: int, reference: Reference) -> Reading | None:
    if year is not None:
        return day(_solar(year, month, number), 0.9)
    for offset in (0, -1, -2):
        met = _solar(reference.now.year + offset, month, number)
        if met <= reference.today:
            return day(met, 0.8)
    return None


class _Lunar(Protocol):
    def to_solar_date(self, lunar_year: int, lunar_month: int, lunar_day: int) -> datetime: ...


@cache
def _lunar() -> _Lunar:
    from jionlp_time.lunar_solar_date import LunarSolarDate  # most texts name no date of that calendar

    made: _Lunar = LunarSolarDate()
    return made


def _solar(year: int, month: int, number: int) -> datetime:
    """The day of a date of the Chinese calendar. Raises ValueError outside its tables (1900 to 2100)."""
    at = _lunar().to_solar_date(year, month, number)
    return local(at.year, at.month, at.day)
