"""Redacted: the marks that stand in a text for what was blacked out of it, before it was stored."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

MARKS: Mapping[str, str] = {
    kind: f"\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}{name}\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
    for kind, name in {"card_number": "card number", "secret": "secret", "pattern": "redacted"}.items()
}
"""By kind. Brackets that nobody types, so that a mark is known for one wherever the text goes."""
_MARK = re.compile("|".join(map(re.escape, MARKS.values())))
_KINDS = {mark: kind for kind, mark in MARKS.items()}


def split_by_marks(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and of each whether it is a mark."""
    done = 0
    for found in _MARK.finditer(text):
        yield text[done : found.start()], False
        yield found[0], True
        done = found.end()
    yield text[done:], False


def marks_in(text: str) -> Mapping[str, int]:
    """How many marks of each kind a text has."""
    return Counter(_KINDS[found] for found in _MARK.findall(text))
