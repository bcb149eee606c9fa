"""Chunks: where a text of 1,800 tokens or more is cut.

Borders are taken in this order: units (the messages of a conversation), paragraphs, sentences, lines, words,
graphemes. Token counts are not additive, so a chunk is measured on its own text, never by subtraction;
subtraction only guesses where to cut. The whole is linear in the text: it is encoded once, and each chunk is
measured a few times.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import regex

from services.domain.sentences import sentence_starts
from services.llm import tokens

THRESHOLD = 1_800
"""A text with fewer tokens is one chunk."""
TARGET = 1_250
MAXIMUM = 1_800
MINIMUM = 750
"""Unless joining either neighbour would pass MAXIMUM."""

_SLACK = 50
"""Tokens by which a guess by subtraction may be off before it misleads."""

_LINE = regex.compile(r"\n(?!\n)")
# Anchored at the first of a run of spaces, so that 100,000 of them cost no more than words do. Chinese and
# Japanese have no spaces between words.
_WORD = regex.compile(
    r"(?<!\s)\s++(?=\S)|(?<=[\p{Han}\p{Hiragana}\p{Katakana}])(?=[\p{Han}\p{Hiragana}\p{Katakana}])"
)
_GRAPHEME = regex.compile(r"\X")


@dataclass(frozen=True, slots=True)
class Span:
    """A chunk's place, as code-point offsets, and its length."""

    start: int
    end: int
    tokens: int


def chunks(text: str, paragraphs: Sequence[int], units: Sequence[int] = ()) -> list[Span]:
    """The chunks of `text`, in order and without gaps; none for "".

    `paragraphs` are the offsets, ascending, of paragraphs that may begin a chunk. `units` are the offsets of
    units, which are cut only where one alone passes MAXIMUM; without any the whole text is one such unit.
    No chunk passes MAXIMUM. One below MINIMUM has only neighbours that it can't join: the two would pass
    MAXIMUM, or be the whole text again. No cut is inside a grapheme, unless it alone passes MAXIMUM.
    """
    if not text:
        return []
    cutter = _Cutter(text, paragraphs, units)
    if cutter.total < THRESHOLD:
        return [Span(0, len(text), cutter.total)]
    found: list[Span] = []
    start = 0
    while start < len(text):
        found.append(cutter.next(start))
        start = found[-1].end
    return _joined(text, found)


@dataclass(frozen=True, slots=True)
class _Window:
    """A chunk that begins at `start` may end at `low` to `high`, best near `target`."""

    start: int
    low: int
    high: int
    target: int


class _Cutter:
    """Finds one chunk of a text after another."""

    def __init__(self, text: str, paragraphs: Sequence[int], units: Sequence[int]) -> None:
        self._text = text
        self._paragraphs = paragraphs
        self._units = units
        self._offsets = tokens.encode_offsets(text)
        self.total = len(self._offsets)

    def next(self, start: int) -> Span:
        """The chunk that begins at `start`."""
        left = self.total - self._before(start)
        if start and left <= MAXIMUM + _SLACK:
            left = tokens.count(self._text[start:])
            if left <= MAXIMUM:
                return Span(start, len(self._text), left)
        most = MAXIMUM
        while most > 0:
            cut = self._cut(start, left, most)
            size = tokens.count(self._text[start:cut])
            if size <= MAXIMUM:
                return Span(start, cut, size)
            # The guess was too low: the next cut lies before this one.
            most = min(most, self._before(cut) - self._before(start)) - (size - MAXIMUM)
        return self._inside_grapheme(start)

    def _cut(self, start: int, left: int, most: int) -> int:
        """The best end of a chunk of at most about `most` tokens; after it about MINIMUM shall be left."""
        # Two even chunks rather than a full one and a small one.
        target = min(TARGET, left // 2, most)
        leaving = self._window(start, max(1, min(most, left - MINIMUM)), target)
        if self._units and (cut := self._unit_cut(leaving, self._window(start, most, target))) is not None:
            return cut
        text, beyond = self._text, min(len(self._text), leaving.high + 1)
        # One character beyond the window is shown, so that a border at its very end is seen.
        finders: tuple[Iterable[int], ...] = (
            _between(self._paragraphs, leaving),
            sentence_starts(text, start, beyond),
            (match.end() for match in _LINE.finditer(text, start, beyond)),
            (match.end() for match in _WORD.finditer(text, start, beyond)),
        )
        for borders in finders:
            if (cut := self._nearest(borders, leaving)) is not None:
                return cut
        return self._grapheme_cut(leaving)

    def _unit_cut(self, leaving: _Window, whole: _Window) -> int | None:
        """Between units; None when the unit at the start alone passes the window."""
        for window in (leaving, whole):
            if (cut := self._nearest(_between(self._units, window), window)) is not None:
                return cut
        last = bisect_right(self._units, whole.high) - 1
        if last >= 0 and self._units[last] > whole.start:
            return self._units[last]
        following = bisect_right(self._units, whole.start)
        end = self._units[following] if following < len(self._units) else len(self._text)
        if self._before(end) - self._before(whole.start) > MAXIMUM + _SLACK or end == len(self._text):
            return None
        return end if tokens.count(self._text[whole.start : end]) <= MAXIMUM else None

    def _grapheme_cut(self, window: _Window) -> int:
        """The last border between graphemes before the target, else the first after it."""
        piece = self._text[window.start : window.target + 1]
        cut = window.start + tokens.grapheme_border(piece, window.target - window.start)
        if cut > window.start:
            return cut
        first = _GRAPHEME.match(self._text, window.start)
        assert first is not None, "a chunk begins inside the text"
        return first.end()

    def _inside_grapheme(self, start: int) -> Span:
        """A piece of a grapheme that alone passes MAXIMUM: the maximum stands, the grapheme can't."""
        for most in range(MAXIMUM, 0, -1):
            cut = max(start + 1, self._at(self._before(start) + most))
            size = tokens.count(self._text[start:cut])
            if size <= MAXIMUM:
                break
        return Span(start, cut, size)

    def _nearest(self, borders: Iterable[int], window: _Window) -> int | None:
        inside = [at for at in borders if max(window.start + 1, window.low) <= at <= window.high]
        inside.sort(key=lambda at: abs(at - window.target))
        return next((at for at in inside if self._is_grapheme_border(at)), None)

    def _is_grapheme_border(self, at: int) -> bool:
        """False where a mark follows that belongs to the space or letter before it."""
        before = _GRAPHEME.match(self._text, at - 1)
        return before is not None and before.end() <= at

    def _window(self, start: int, most: int, target: int) -> _Window:
        first = self._before(start)
        low = self._at(first + min(MINIMUM, most))
        return _Window(start, low, self._at(first + most), self._at(first + target))

    def _before(self, offset: int) -> int:
        """About how many tokens lie before a code-point offset."""
        return bisect_left(self._offsets, offset)

    def _at(self, token: int) -> int:
        """The code-point offset at which a token begins; the text's end beyond the last."""
        return self._offsets[token] if token < self.total else len(self._text)


def _between(borders: Sequence[int], window: _Window) -> Sequence[int]:
    return borders[bisect_left(borders, window.low) : bisect_right(borders, window.high)]


def _joined(text: str, spans: list[Span]) -> list[Span]:
    """The spans, with those below MINIMUM joined to a neighbour wherever the two fit."""
    at = 0
    while at < len(spans):
        if spans[at].tokens >= MINIMUM:
            at += 1
            continue
        neighbours = [left for left in (at - 1, at) if 0 <= left < len(spans) - 1]
        # The smaller neighbour first, so that sizes stay even.
        neighbours.sort(key=lambda left: spans[left].tokens + spans[left + 1].tokens)
        for left in neighbours:
            start, end = spans[left].start, spans[left + 1].end
            size = tokens.count(text[start:end])
            if size <= MAXIMUM and end - start < len(text):
                spans[left : left + 2] = [Span(start, end, size)]
                at = max(0, left - 1)  # what could not join before is asked again
                break
        else:
            at += 1
    return spans
