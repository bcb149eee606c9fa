"""The words of Chinese dates: numbers, units, and the regex fragments made of them."""

import re

from services.domain.dates.calendar import Unit

_FOLDED = str.maketrans(
    "０１２３４５６７８９／－．：週個號後兩禮點鐘時間開從現這來為過當節農曆歲餘幾趕聖誕萬無關帶與〇",
    "0123456789/-.:周个号后两礼点钟时间开从现这来为过当节农历岁余几赶圣诞万无关带与零",
)
HAN = re.compile(r"[\u4e00-\u9fff]")
"""What makes a text one that the Chinese rules look at."""

_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000}
NUMBER = r"(?:\d{1,4}|[零一二两三四五六七八九十百千]{1,7})"
YEAR = r"(?:[12]\d{3}|[12一二][零一二三四五六七八九]{3}|两千(?:零?[一二三四五六七八九十]{1,3})?)"
"""A year of four digits, or one that is spoken."""
SHORT_YEAR = r"(?:0\d|[零九][零一二三四五六七八九]|八[零一二三四五六七八]|七[零一二三四五六七九])"
"""A year of two digits that can be no count: `15` may be fifteen years, `七八` seven or eight."""
YEAR_WORDS = {
    "今年": 0, "本年": 0, "本年度": 0, "去年": -1, "上一年": -1, "前年": -2, "大前年": -3,
    "明年": 1, "下一年": 1, "后年": 2, "大后年": 3,
}  # fmt: skip
YEAR_WORD = "(?:" + "|".join(sorted(YEAR_WORDS, key=len, reverse=True)) + ")"
MONTH = r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_ONES = "[一二三四五六七八九]"
DAY = rf"(?:3[01]|[12]\d|0?[1-9]|三十一?|二?十{_ONES}?|廿{_ONES}?|{_ONES})"
WEEK = r"(?:周|星期|礼拜)"
WEEKDAYS = {name: number for number, name in enumerate("一二三四五六日")} | {"天": 6}
WEEKDAY = "[一二三四五六日天]"
WHICH = r"(?:上{1,3}一?|下{1,3}一?|这一?|本)"
UNITS = {
    "分钟": Unit.MINUTE, "小时": Unit.HOUR, "钟头": Unit.HOUR, "天": Unit.DAY, "日": Unit.DAY,
    "周": Unit.WEEK, "星期": Unit.WEEK, "礼拜": Unit.WEEK, "月": Unit.MONTH, "季度": Unit.QUARTER,
    "年": Unit.YEAR,
}  # fmt: skip
_VAGUE = {"几": 3, "好几": 4, "数": 4, "若干": 3}
QUANTITY = (
    r"(?P<q>半|(?:\d{1,3}|[一二两三四五六七八九十百]{1,5})(?P<half>个半)?|好几|几十?|数十?)(?P<more>多|来|余)?"
    r"(?:个?(?P<u>月|星期|礼拜|季度|小时|钟头)|(?P<v>分钟|天|日|周|年)(?P<tail>半)?)"
)
"""A count and its unit: `三年`, `半个月`, `一年半`, `十多年`."""


def fold(text: str) -> str:
    """The text with simplified characters and plain digits where dates need them; as long as before."""
    return text.translate(_FOLDED)


def number_of(text: str) -> int:
    """The value of `12`, `十二`, `二零二五`, `两千零四`. Raises ValueError."""
    if text.isdigit() and text.isascii():
        return int(text)
    if text.startswith("廿"):
        text = "二十" + text[1:]
    if len(text) > 1 and all(character in _DIGITS for character in text):
        return int("".join(str(_DIGITS[character]) for character in text))
    total = current = 0
    for character in text:
        if character in _TENS:
            total += (current or 1) * _TENS[character]
            current = 0
        elif character in _DIGITS:
            current = _DIGITS[character]
        else:
            raise ValueError(text)
    return total + current


def year_of(text: str) -> int:
    """The year of `2025`, `二零二五`, `两千零四`, `07` or `九八`. Raises ValueError."""
    if text in {"两千", "二千"}:
        return 2000
    mixed = "".join(str(_DIGITS.get(character, character)) for character in text)
    number = int(mixed) if mixed.isdigit() and mixed.isascii() else number_of(text)
    if number > 99:
        return number
    return 2000 + number if number < 50 else 1900 + number


def step_of(text: str) -> int:
    """How many weeks, months or quarters `上上`, `这` or `下` go."""
    return text.count("下") - text.count("上")


def _count(text: str) -> int:
    if text[0] in "几好数":
        return _VAGUE[text.removesuffix("十")] * (10 if text.endswith("十") else 1)
    if len(text) > 1 and all(character in _DIGITS for character in text):
        raise ValueError("three or four is not thirty-four")
    return number_of(text)


def amount(found: re.Match[str]) -> tuple[int, Unit, bool]:
    """Count, unit and whether it is vague, of a match of QUANTITY; halves in the unit below.

    Raises ValueError for what is no count.
    """
    text, unit = found["q"].removesuffix("个半"), UNITS[found["u"] or found["v"]]
    vague = bool(found["more"]) or text.startswith(("几", "好几", "数"))
    if text == "半":
        half = {Unit.YEAR: (6, Unit.MONTH), Unit.MONTH: (2, Unit.WEEK), Unit.HOUR: (30, Unit.MINUTE)}
        if unit not in half or found["tail"]:
            raise ValueError("half of what has no half")
        return *half[unit], unit is Unit.MONTH
    count = _count(text)
    if found["tail"] or found["half"]:
        lower = {Unit.YEAR: (12, Unit.MONTH), Unit.MONTH: (4, Unit.WEEK), Unit.HOUR: (60, Unit.MINUTE)}
        if unit not in lower:
            raise ValueError("half of what has no half")
        size, smaller = lower[unit]
        return count * size + size // 2, smaller, vague or unit is Unit.MONTH
    return count, unit, vague
