r"""Patterns of one's own: regular expressions by which a graph blacks out texts; only such as end in time.

The syntax is what RE2 and Python have in common: literals, classes, groups, alternatives, repetitions, `^`,
`$`, `\b`. What would make the time of a search grow beyond bounds is refused when it is set (references,
views ahead and back, repetitions of repetitions); what is slow on a text all the same is cut, and the text
refused.
"""

import time
import warnings
from collections.abc import Iterator, Sequence

import regex

from services.domain.redacted import split_by_marks

LONGEST_REPEAT = 1_000
"""Repetitions that a pattern may count."""
LONGEST_OF_CHOICES = 10
"""Repetitions of what varies itself, within bounds: four numbers of one to three digits are an address."""
TRIAL_SECONDS = 1.0
"""What all patterns may take on the texts of the trial, which are long and of little variety."""
SECONDS = 5.0
"""What all patterns of a graph may take on one text."""
_TRIALS = tuple(f"{text * 2_000}\x01" for text in ("a", "1", " ", "-", "ab1 ", "a.b@"))

_BRACES = regex.compile(r"\{(\d{1,6})(?:,(\d{0,6}))?\}")
_GROUP = regex.compile(r"\(\?(?:P<[A-Za-z_]\w{0,63}>|[ims]{0,3}(?:-[ims]{1,3})?[:)])")
_ESCAPED = frozenset("dDwWsSbBtnrfv")
"""Letters that mean something after a backslash; digits would be references."""


class BadPattern(ValueError):
    """Why a pattern is refused, without the pattern: it may be as private as what it finds."""


class TookTooLong(Exception):
    """The patterns did not get through a text in time."""


class Patterns:
    """Compiled patterns of a graph. Pure, but for the time that they are given."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raises BadPattern for one that does not compile; `check` tells more."""
        self._patterns = [_compiled(pattern) for pattern in patterns]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def marked(self, text: str, mark: str, seconds: float = SECONDS) -> str:
        """The text with a mark for all that a pattern finds between other marks. Raises TookTooLong."""
        until = time.monotonic() + seconds
        for pattern in self._patterns:
            pieces: list[str] = []
            for piece, is_mark in split_by_marks(text):
                pieces.append(piece if is_mark else _without(pattern, piece, mark, until))
            text = "".join(pieces)
        return text

    def finds(self, text: str) -> bool:
        """Whether all of a text is what a pattern finds, as of a number."""
        return any(pattern.fullmatch(text, timeout=SECONDS) for pattern in self._patterns)


def check(patterns: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Which of these are refused, and why. Ends with the first that takes too long.

    Accepted are those that compile, find something, and get through long texts in time.
    """
    until = time.process_time() + TRIAL_SECONDS
    for number, pattern in enumerate(patterns):
        try:
            _refuse_what_may_not_end(pattern)
            _try(_compiled(pattern), until)
        except TookTooLong:
            yield number, "takes too long on long texts"
            return
        except BadPattern as error:
            yield number, str(error)


def _try(pattern: "regex.Pattern[str]", until: float) -> None:
    """`until`: of the process's time, by which the library counts, too. Raises BadPattern, TookTooLong."""
    try:
        if pattern.search("", timeout=TRIAL_SECONDS) is not None:
            raise BadPattern("finds what is empty")
        for text in _TRIALS:
            left = until - time.process_time()
            if left <= 0:
                raise TookTooLong
            for _ in pattern.finditer(text, timeout=left, concurrent=True):
                pass
    except TimeoutError:
        raise TookTooLong from None


def _compiled(pattern: str) -> "regex.Pattern[str]":
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return regex.compile(pattern, regex.VERSION0)
    except (regex.error, Warning, OverflowError, RecursionError, ValueError):
        raise BadPattern("is no regular expression") from None


def _without(pattern: "regex.Pattern[str]", text: str, mark: str, until: float) -> str:
    left = until - time.monotonic()
    if left <= 0:
        raise TookTooLong
    try:
        return pattern.sub(lambda found: mark if found[0] else "", text, timeout=left, concurrent=True)
    except TimeoutError:
        raise TookTooLong from None


_NOT, _BOUNDED, _UNBOUNDED = range(3)
"""How something varies: not, within bounds, or as far as the text goes."""


def _refuse_what_may_not_end(pattern: str) -> None:
    """Repetitions of what repeats, and what looks elsewhere in the text."""
    open_groups = [_NOT]
    """For the pattern itself and each group that is open, how what is in it varies."""
    before = _NOT
    """Of the group that was closed just now, if one was, the same."""
    repeated = False
    at = 0
    while at < len(pattern):
        step, kind, most = _token(pattern, at)
        if kind == "repeat":
            if repeated or (before and (before is _UNBOUNDED or most > LONGEST_OF_CHOICES)):
                raise BadPattern("repeats what repeats or chooses")
            varies = _UNBOUNDED if most > LONGEST_REPEAT else _BOUNDED
            open_groups[-1] = max(open_groups[-1], varies)
        elif kind == "(":
            open_groups.append(_NOT)
        elif kind == "|":
            # Alternatives that begin alike are a choice at each turn of a repetition.
            open_groups[-1] = max(open_groups[-1], _BOUNDED)
        elif kind == ")" and len(open_groups) == 1:
            raise BadPattern("is no regular expression")
        before = open_groups.pop() if kind == ")" else _NOT
        open_groups[-1] = max(open_groups[-1], before)
        repeated = kind == "repeat"
        at += step


def _token(pattern: str, at: int) -> tuple[int, str, int]:
    """The next token: how many characters, what it is (`(`, `)`, `|`, repeat, other), how often at most."""
    char = pattern[at]
    match char:
        case "\\":
            return _escape(pattern, at), "other", 0
        case "[":
            return _class(pattern, at), "other", 0
        case "(":
            return *_opening(pattern, at), 0
        case ")" | "|":
            return 1, char, 0
        case "*" | "+" | "?":
            return 1 + _lazily(pattern, at + 1), "repeat", 1 if char == "?" else LONGEST_REPEAT + 1
        case "{":
            return _braces(pattern, at)
        case _:
            return 1, "other", 0


def _escape(pattern: str, at: int) -> int:
    after = pattern[at + 1 : at + 2]
    if not after or (after.isalnum() and after not in _ESCAPED):
        raise BadPattern("has a reference or an escape that is not known here")
    return 2


def _class(pattern: str, at: int) -> int:
    """A class of characters, to its end: no sets of sets."""
    end = at + 1 + pattern[at + 1 : at + 2].count("^")
    end += pattern[end : end + 1].count("]")
    while end < len(pattern) and pattern[end] != "]":
        if pattern[end] == "[":
            raise BadPattern("has a class in a class")
        end += _escape(pattern, end) if pattern[end] == "\\" else 1
    if end >= len(pattern):
        raise BadPattern("is no regular expression")
    return end + 1 - at


def _opening(pattern: str, at: int) -> tuple[int, str]:
    if pattern[at + 1 : at + 2] != "?":
        return 1, "("
    found = _GROUP.match(pattern, at)
    if found is None:
        raise BadPattern("looks ahead or back, or has a group that is not known here")
    # Flags alone, `(?i)`, open nothing.
    return len(found[0]), "other" if found[0].endswith(")") else "("


def _lazily(pattern: str, at: int) -> int:
    """A `?` that makes a repetition lazy; a `+` would be another one on top of it."""
    return int(pattern[at : at + 1] == "?")


def _braces(pattern: str, at: int) -> tuple[int, str, int]:
    found = _BRACES.match(pattern, at)
    if found is None:
        raise BadPattern("has a brace that counts nothing: write \\{")
    least, most = found[1], found[2]
    if max(int(least), int(most or 0)) > LONGEST_REPEAT:
        raise BadPattern(f"counts beyond {LONGEST_REPEAT}")
    size = len(found[0]) + _lazily(pattern, at + len(found[0]))
    if most == "":
        return size, "repeat", LONGEST_REPEAT + 1
    return size, "repeat", int(least if most is None else most)
