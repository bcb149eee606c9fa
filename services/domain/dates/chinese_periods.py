"""Chinese dates of more than a day: weeks, months, quarters, half-years, seasons, years, decades."""

from datetime import timedelta
from re import Match

from services.domain.dates import chinese_words as w
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
    whole,
    year,
)
from services.domain.dates.chinese_days import MAYBE_YEAR, YEAR, month_in, year_in
from services.domain.dates.rules import Rules
from services.domain.instants import Precision


def add_periods(rule: Rules) -> None:
    """Adds the rules of this module."""
    _weeks(rule)
    _months(rule)
    _quarters(rule)
    _years(rule)
    _rolling(rule)


def _weeks(rule: Rules) -> None:
    @rule(rf"(?P<w>{w.WHICH})个?{w.WEEK}(?![一二三四五六日天末期年边围围岁])")
    def _week(found: Match[str], reference: Reference) -> Reading:
        return week(reference.now + timedelta(days=7 * w.step_of(found["w"])), 0.95)

    @rule(
        rf"{MAYBE_YEAR}(?P<m>{w.MONTH})月(?:份)?的?(?P<o>第[一二三四1-4]|最后一)个?(?:周|星期|礼拜)(?![一二三四五六日天])"
    )
    def _nth(found: Match[str], reference: Reference) -> Reading | None:
        start = _month(found, reference)
        if start is None:
            return None
        if found["o"].startswith("最"):
            return week(start.last - timedelta(days=4), 0.8)
        # a week belongs to the month that has its Thursday
        return week(start.first + timedelta(days=3 + 7 * (w.number_of(found["o"][1]) - 1)), 0.8)


def _month(found: Match[str], reference: Reference) -> Reading | None:
    number, told = w.number_of(found["m"]), year_in(found, reference)
    return near(YearlyReading(number), reference) if told is None else month(told, number)


_THIRDS = {"上旬": 0, "初": 0, "中旬": 1, "中": 1, "下旬": 2, "底": 2, "末": 2}


def _months(rule: Rules) -> None:
    part = r"(?P<p>上旬|中旬|下旬|初|底|末|中(?![国文学心间]))?"

    @rule(
        rf"{MAYBE_YEAR}(?<![每第\d一二三四五六七八九十个])(?P<m>{w.MONTH}) ?月"
        rf"(?![子球亮饼光经嫂天怀])(?:份)?{part}"
    )
    def _named(found: Match[str], reference: Reference) -> Reading | None:
        read = _month(found, reference)
        return _third(read, found["p"]) if read else None

    @rule(rf"(?P<w>{w.WHICH})个?月{part}")
    def _which(found: Match[str], reference: Reference) -> Reading:
        first = month_in(found["w"], reference)
        return _third(month(first.year, first.month, 0.95), found["p"])

    @rule(r"(?<![A-Za-z\d/.-])(?P<y>(?:19|20)\d{2})[-/](?P<m>0?[1-9]|1[0-2])(?![A-Za-z\d/.-])")
    def _numbers(found: Match[str], _: Reference) -> Reading:
        return month(int(found["y"]), int(found["m"]))


def _third(read: Reading, part: str | None) -> Reading:
    if part is None:
        return read
    first = read.first + timedelta(days=10 * _THIRDS[part])
    last = read.last if _THIRDS[part] == 2 else first + timedelta(days=10)
    return Reading(first, last, Precision.WEEK, 0.8, read.floats)


def _quarters(rule: Rules) -> None:
    @rule(rf"{MAYBE_YEAR}(?:第?(?P<q>[一二三四1-4])个?季度|Q(?P<k>[1-4]))")
    def _quarter(found: Match[str], reference: Reference) -> Reading | None:
        number, stated = w.number_of(found["q"] or found["k"]), year_in(found, reference)
        if stated is None and found["k"]:
            return None
        if stated is not None:
            return quarter(stated, number)
        this = quarter(reference.now.year, number)
        late = reference.prefer is Prefer.PAST and this.first > reference.now
        return quarter(reference.now.year - late, number)

    @rule(rf"(?P<w>{w.WHICH})个?季度")
    def _which(found: Match[str], reference: Reference) -> Reading:
        return whole(shift(reference.now, Unit.QUARTER, w.step_of(found["w"])), Unit.QUARTER, 0.95)

    @rule(rf"{MAYBE_YEAR}(?P<h>上|下)半年")
    def _half(found: Match[str], reference: Reference) -> Reading:
        told = year_in(found, reference)
        month_number = 1 if found["h"] == "上" else 7
        first = local(reference.now.year if told is None else told, month_number)
        if told is None and reference.prefer is Prefer.PAST and first > reference.now:
            first = first.replace(year=first.year - 1)
        return Reading(first, shift(first, Unit.MONTH, 6), Precision.QUARTER, 0.9 if told else 0.8)

    @rule(rf"{YEAR}(?P<s>[春夏秋冬])(?:天|季|(?![节游运眠至分令装虫]))")
    def _season(found: Match[str], reference: Reference) -> Reading | None:
        told = year_in(found, reference)
        names = {"春": "spring", "夏": "summer", "秋": "autumn", "冬": "winter"}
        return None if told is None else season(told, names[found["s"]], 0.8)


def _years(rule: Rules) -> None:
    @rule(
        rf"(?:公元)?(?P<y>{w.YEAR}|{w.SHORT_YEAR}) ?年(?P<p>初|底|末|中(?![国文学心间]))?"
        r"(?![多来级代度的]?(?:历史|以内)|级|代)度?"
    )
    def _written(found: Match[str], _: Reference) -> Reading:
        return _part_of(year(w.year_of(found["y"]), 0.95), found["p"])

    @rule(rf"(?P<r>{w.YEAR_WORD})(?P<p>年?初|年?底|年?末|年?中(?![国文学心间]))?")
    def _relative(found: Match[str], reference: Reference) -> Reading:
        read = year(reference.now.year + w.YEAR_WORDS[found["r"]])
        return _part_of(read, (found["p"] or "").removeprefix("年") or None)

    @rule(
        r"(?<=[从自])(?P<y>(?:19|20)\d{2})(?= ?(?:到|至|以来|起|开始|-|~))"
        r"|(?<=\d[到至~-])(?P<z>(?:19|20)\d{2})(?![年\d个人元块/.-])"
    )
    def _bare(found: Match[str], _: Reference) -> Reading:
        return year(int(found["y"] or found["z"]), 0.9)

    tens = r"(?:\d0|[一二三四五六七八九]?十)"

    @rule(
        rf"(?:(?P<c>上|本|1\d|20|十[六七八九]|二十) ?世纪)?(?P<t>{tens}) ?年代|(?P<y>(?:1[5-9]|20)\d0) ?年代"
    )
    def _decade(found: Match[str], reference: Reference) -> Reading | None:
        if found["y"]:
            return decade(int(found["y"]))
        tenth = w.number_of(found["t"])
        if found["c"] is None:
            return decade(1900 + tenth) if tenth >= 30 else None
        this = reference.now.year // 100
        return decade(
            100 * ({"上": this - 1, "本": this}.get(found["c"]) or w.number_of(found["c"]) - 1) + tenth
        )


def _part_of(read: Reading, part: str | None) -> Reading:
    if part is None:
        return read
    first = shift(read.first, Unit.MONTH, 4 * _THIRDS[part])
    return Reading(first, shift(first, Unit.MONTH, 4), Precision.QUARTER, 0.8)


def _rolling(rule: Rules) -> None:
    back = r"(?:过去|最近|近|这)(?:的|这)?"
    ahead = r"(?:未来|接下来|今后)的?"

    @rule(
        rf"(?:(?P<b>{back})|(?P<a>{ahead})|(?P<c>(?<![\u4e00-\u9fff])[前上])) ?{w.QUANTITY}"
        r"(?![前后以之])(?:里|内|间|中|来)?"
    )
    def _rolled(found: Match[str], reference: Reference) -> Reading | None:
        count, unit, vague = w.amount(found)
        if found["b"] == "这" and count == 1:
            return None  # "这一天" is any day
        sign = 1 if found["a"] else -1
        first, last = sorted((day(shift(reference.now, unit, sign * count)).first, reference.today))
        if sign > 0:
            first, last = first + timedelta(days=1), last + timedelta(days=1)
        return Reading(first, last, PRECISION_OF[unit], 0.5 if vague else 0.7)
