"""The words of English dates: months, weekdays, numbers, and the regex fragments made of them."""

import re
from collections.abc import Iterable

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sept", "sep"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}

WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            ("monday", "mon"),
            ("tuesday", "tues", "tue"),
            ("wednesday", "weds", "wed"),
            ("thursday", "thurs", "thur", "thu"),
            ("friday", "fri"),
            ("saturday", "sat"),
            ("sunday", "sun"),
        )
    )
    for name in names
}

_SMALL = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14,
    "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19,
    "twentieth": 20, "thirtieth": 30,
}  # fmt: skip
VAGUE = {"a": 1, "an": 1, "the": 1, "couple": 2, "few": 3, "several": 4}
"""Words that count, and how much they usually mean."""


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_ABBREVIATED = "jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec"
MONTH = rf"(?:(?:{_ABBREVIATED})\b\.?|(?:{_any(MONTHS)})\b)"
WEEKDAY_NAME = rf"(?:{_any(WEEKDAYS)})"
WEEKDAY = rf"{WEEKDAY_NAME}\b"
_ONES = r"(?:one|two|three|four|five|six|seven|eight|nine)"
_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
NUMBER = rf"(?:\d{{1,4}}|{_TENS}[- ]{_ONES}\b|(?:{_any(_SMALL)})\b)"
ORDINAL = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)\b|twenty[- ](?:{_any(_ORDINALS)})\b|thirty[- ]first\b"
    rf"|(?:{_any(_ORDINALS)})\b)"
)
DAY = rf"(?:{ORDINAL}|(?:3[01]|[12]\d|0?[1-9])(?![\d:])|twenty[- ]{_ONES}\b|thirty[- ]one\b)"
"""The day of a month."""
_COUNTED = r" (?:minute|hour|day|week|month|quarter|year|decade)s\b"
"""What makes a number before it a count: "2027 years ago" is no year."""
YEAR = rf"(?:(?:1[0-9]|20|21)\d{{2}}(?![\d%]|\.\d|{_COUNTED})|'\d{{2}}(?!\d))"
SPOKEN_YEAR = (
    rf"(?:nineteen|twenty)[- ](?:hundred|(?:oh|zero)[- ]{_ONES}\b|{_TENS}(?:[- ]{_ONES}\b)?|ten|eleven|"
    rf"twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen)"
    rf"|two thousand(?:(?: and)? {NUMBER})?"
)
UNIT = r"(?:minute|min|hour|day|week|fortnight|month|quarter|year|decade)s?\b"
QUANTITY = rf"(?:(?:a )?(?:couple(?: of)?|few)|several|an?|{NUMBER})"
PAST_WORD = r"(?:last|past|previous|prior)"
NEXT_WORD = r"(?:next|coming|upcoming|following)"
THIS_WORD = r"(?:this|current|the same|same)"
WHICH = rf"(?:{PAST_WORD}|{NEXT_WORD}|{THIS_WORD})"


def month_of(text: str) -> int:
    return MONTHS[text.lower().rstrip(".")]


def weekday_of(text: str) -> int:
    return WEEKDAYS[text.lower().rstrip(".")]


def number_of(text: str) -> int:
    """The value of a cardinal, an ordinal or a vague count ("a couple of"). Raises KeyError."""
    words = text.lower().replace("-", " ")
    if digits := re.match(r"\d+", words):
        return int(digits.group())
    parts = [part for part in words.split() if part not in {"of", "and"}]
    if len(parts) > 1 and parts[0] in {"a", "the"}:
        parts = parts[1:]
    values = [_SMALL.get(part) or _ORDINALS.get(part) or VAGUE[part] for part in parts]
    return sum(values)


def is_vague(text: str) -> bool:
    return any(word in {"couple", "few", "several"} for word in text.lower().split())


def year_of(text: str) -> int:
    """The year of `2023`, `'23`, "nineteen ninety nine" or "two thousand and eighteen". Raises KeyError."""
    words = text.lower().strip()
    if words.startswith("'"):
        return two_digit_year(int(words[1:]))
    if words.isdigit():
        return int(words)
    parts = [part for part in re.split(r"[- ]", words) if part != "and"]
    if parts[:2] == ["two", "thousand"]:
        return 2000 + (number_of(" ".join(parts[2:])) if parts[2:] else 0)
    century, rest = _SMALL[parts[0]], [part for part in parts[1:] if part not in {"oh", "zero", "hundred"}]
    return century * 100 + (number_of(" ".join(rest)) if rest else 0)


def two_digit_year(number: int) -> int:
    """`'24` is 2024 and `'89` 1989."""
    return 2000 + number if number < 50 else 1900 + number
