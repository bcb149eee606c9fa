"""The table of rules: patterns, each with the function that reads what it finds."""

from collections.abc import Callable
from re import IGNORECASE, Match, Pattern
from re import compile as _compile

from services.domain.dates.calendar import Reading, Reference

Reader = Callable[[Match[str], Reference], Reading | None]
"""Reads a match; None when it names no date after all. May raise ValueError, KeyError or OverflowError."""

Found = tuple[int, int, Reading]
"""`(begin, end, reading)`: where in the text an expression stands, and what it means."""


class Rules:
    """Patterns in the order they were written. Each language makes one such table.

    `before` and `after` are what may not stand beside a match: by default a letter or digit.
    """

    def __init__(self, before: str = r"(?<![\w/.])", after: str = r"(?!\w)") -> None:
        self._before, self._after = before, after
        self._rules: list[tuple[Pattern[str], Reader]] = []

    def __call__(self, pattern: str) -> Callable[[Reader], Reader]:
        """Adds the decorated function as the reader of what the pattern finds."""

        def add(reader: Reader) -> Reader:
            self._rules.append((_compile(f"{self._before}(?:{pattern}){self._after}", IGNORECASE), reader))
            return reader

        return add

    def find(self, text: str, reference: Reference) -> list[Found]:
        """All readings: leftmost first, the longer of two that overlap.

        Of equal spans the rule written first wins.
        """
        found: list[Found] = []
        for pattern, reader in self._rules:
            for match in pattern.finditer(text):
                try:
                    reading = reader(match, reference)
                except (ValueError, KeyError, OverflowError):
                    continue
                if reading is not None:
                    found.append((match.start(), match.end(), reading))
        return longest(found)


def longest(found: list[Found]) -> list[Found]:
    """Those that remain when the longer of two that overlap stays, in the order of the text."""
    kept: list[Found] = []
    for begin, end, reading in sorted(found, key=lambda item: (-(item[1] - item[0]), item[0])):
        if all(end <= other[0] or begin >= other[1] for other in kept):
            kept.append((begin, end, reading))
    return sorted(kept, key=lambda item: item[0])
