"""Redaction: card numbers, secrets and what patterns find go from texts before anything keeps or reads them.

What is known for one, and what is not, is told in docs/privacy.md. Pure: the same text gives the same
marks, and a text with marks gives itself.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from gateway.patterns import Patterns
from palimpsest.v1.graph_pb2 import RedactionSettings
from services.domain.redacted import MARKS

CARD, SECRET, OWN = MARKS["card_number"], MARKS["secret"], MARKS["pattern"]

LEAST_DIGITS, MOST_DIGITS = 13, 19
"""Of a payment card's number (ISO/IEC 7812)."""
_BETWEEN = r"[\s\-_.,/\\|\u00ad\u180e\u200b-\u200f\u2010-\u2015\u2060\u2212\ufe58\ufe63\uff0d\ufeff]{0,3}"
_RUN = re.compile(rf"\d(?:{_BETWEEN}\d){{{LEAST_DIGITS - 1},}}")
_DIGITS = re.compile(r"\d+")

_NAMED = r"pass(?:word|phrase|code|wd)|pwd|api[ _-]?key|secret[ _-]?key|private[ _-]?key|access[ _-]?key"
_NAMED += r"|client[ _-]?secret|(?:access|auth|api|bearer|refresh|session)[ _-]?token"
_VALUE = r"(?P<value>\"[^\"\n]{3,}\"|'[^'\n]{3,}'|[^\s\"'\u27e6,;]{4,})"
_SECRETS: Sequence["re.Pattern[str]"] = [
    # Private keys, to their end or to that of the text.
    re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
        re.DOTALL,
    ),
    # Keys and tokens that tell what they are by how they begin.
    re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
    re.compile(r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}"),
    re.compile(r"(?<![A-Za-z0-9])xox[a-z]-[A-Za-z0-9-]{10,}"),
    re.compile(r"(?<![A-Za-z0-9])xapp-[A-Za-z0-9-]{10,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:sk|rk|pk|whsec)_(?:live|test)?_?[A-Za-z0-9_]{16,}"),
    re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,}"),
    re.compile(r"(?<![A-Za-z0-9])AIza[0-9A-Za-z_-]{30,}"),
    re.compile(r"(?<![A-Za-z0-9])ya29\.[0-9A-Za-z_-]{20,}"),
    re.compile(r"(?<![A-Za-z0-9])(?:npm|hf|dop_v1|shpat|SG)[_.][A-Za-z0-9_.-]{20,}"),
    # JSON web tokens.
    re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    # What goes with a request to prove who asks.
    re.compile(r"(?i)\b(?:bearer|basic)\s+(?P<value>[A-Za-z0-9._~+/=-]{16,})"),
    # The password in an address.
    re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,200}:(?P<value>[^\s/@\u27e6]{1,200})@"),
    # What is called a password, key or token.
    re.compile(rf"(?i)\b(?:{_NAMED})\b[\"']?\s*(?:is\b|are\b|:=|=>|[:=])\s*{_VALUE}"),
]


class Redactor:
    """Blacks out of texts what a graph's settings say."""

    def __init__(self, settings: RedactionSettings) -> None:
        self._secrets = settings.secrets
        self._cards = settings.card_numbers
        self._patterns = Patterns(settings.patterns)

    def __bool__(self) -> bool:
        return self._secrets or self._cards or bool(self._patterns)

    def text(self, text: str) -> str:
        """The text with marks. Takes time in the length of the text alone, but for patterns of one's own.

        Raises TookTooLong for these.
        """
        if self._secrets:
            for pattern in _SECRETS:
                text = pattern.sub(_marked, text)
        text = without_cards(text) if self._cards else text
        return self._patterns.marked(text, OWN) if self._patterns else text

    def mark_of(self, number: float) -> str:
        """The mark for a number, given as such: of a card, or what a pattern finds; "" for any other."""
        digits = str(int(number)) if number.is_integer() else repr(number)
        if self._cards and number.is_integer() and _is_card(digits):
            return CARD
        return OWN if self._patterns and self._patterns.finds(digits) else ""


def _marked(found: "re.Match[str]") -> str:
    if "value" not in found.re.groupindex:
        return SECRET
    first, after = found.span("value")
    start = found.start()
    return found[0][: first - start] + SECRET + found[0][after - start :]


def without_cards(text: str) -> str:
    """The text with a mark for every number of a card, however its digits are grouped and written."""
    parts, done = [], 0
    for first, after in _cards_in(text):
        parts += [text[done:first], CARD]
        done = after
    return "".join([*parts, text[done:]])


def _cards_in(text: str) -> Iterator[tuple[int, int]]:
    """Where cards are, in order, those that overlap as one."""
    held: tuple[int, int] | None = None
    for run in _RUN.finditer(text):
        groups = [(run.start() + one.start(), run.start() + one.end()) for one in _DIGITS.finditer(run[0])]
        for first, after in _windows(text, groups):
            if held is not None and first < held[1]:
                held = (held[0], max(held[1], after))
                continue
            if held is not None:
                yield held
            held = (first, after)
    if held is not None:
        yield held


def _windows(text: str, groups: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Groups of digits in a row that together are a card's number; from each first one the longest."""
    plain = [_plain(text[first : min(after, first + MOST_DIGITS + 1)]) for first, after in groups]
    for at, (first, _) in enumerate(groups):
        digits, longest = "", None
        # A window has a digit a group at least.
        for one in range(at, min(at + MOST_DIGITS, len(groups))):
            digits += plain[one]
            if len(digits) > MOST_DIGITS:
                break
            if len(digits) >= LEAST_DIGITS and _is_card(digits):
                longest = groups[one][1]
        if longest is not None:
            yield first, longest


def _plain(digits: str) -> str:
    """Digits of any script as 0 to 9."""
    return "".join(str(unicodedata.digit(one)) for one in digits)


def _is_card(digits: str) -> bool:
    """Of a known network, of a possible length, with the right check digit."""
    if not LEAST_DIGITS <= len(digits) <= MOST_DIGITS:
        return False
    known = digits[0] in "3456" or 2221 <= int(digits[:4]) <= 2720
    if not known or len(set(digits)) == 1:
        return False
    doubled = sum(sum(divmod(2 * int(one), 10)) for one in digits[-2::-2])
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0
