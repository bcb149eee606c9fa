"""Postings: which documents have which terms and how often, as arrays by the numbers of terms."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from services.recall.states import State

Places = npt.NDArray[np.int64]
Counts = npt.NDArray[np.float32]

_PLACE_BITS = np.uint64(32)
LEAST_FRESH = 4_096
_FRESH_SHARE = 4
"""What came since the arrays were made is looked through term by term, up to a quarter of them."""


class Postings:
    """Documents come in the order of their places, and none goes.

    To put one into sorted arrays would cost all of them: what comes lies beside, each word as it occurs,
    and is sorted in when it has become a share of all.
    """

    def __init__(self, state: State | None = None) -> None:
        """`state`: another one's."""
        held = state or {}
        self._starts = np.asarray(held.get("starts", [0]), dtype=np.int64)
        """By term: where its documents begin in `_places` and `_counts`; one more at the end."""
        self._places = np.asarray(held.get("places", []), dtype=np.uint32)
        self._counts = np.asarray(held.get("counts", []), dtype=np.float32)
        self._fresh: list[tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]] = []
        """Terms, and the place of the document where each occurs."""
        self._occurrences = 0

    @property
    def bytes(self) -> int:
        sorted_in = self._starts.nbytes + self._places.nbytes + self._counts.nbytes
        return sorted_in + sum(terms.nbytes + places.nbytes for terms, places in self._fresh)

    @property
    def state(self) -> State:
        """All of it; an array that is there is never written to."""
        self.sort_in()
        return {"starts": self._starts, "places": self._places, "counts": self._counts}

    def add(self, first: int, terms: Sequence[int], lengths: Sequence[int]) -> None:
        """Adds documents from a place on: the terms of all, one after the other, and how many each has."""
        if not terms:
            return
        places = np.arange(first, first + len(lengths), dtype=np.uint32)
        self._fresh.append((np.array(terms, dtype=np.uint32), np.repeat(places, lengths)))
        self._occurrences += len(terms)

    def of(self, term: int) -> tuple[Places, Counts]:
        """The documents that have a term, by place, and how often each has it."""
        if self._occurrences > max(LEAST_FRESH, len(self._places) // _FRESH_SHARE):
            self.sort_in()
        places, counts = self._sorted(term)
        if not self._fresh:
            return places, counts
        terms, at = self._fresh_arrays()
        more, often = np.unique(at[terms == term], return_counts=True)
        return (
            np.concatenate([places, more.astype(np.int64)]),
            np.concatenate([counts, often.astype(np.float32)]),
        )

    def sort_in(self) -> None:
        """What came lately, into the arrays: in one go after a load, else by `of`, where it is much."""
        if not self._fresh:
            return
        terms, at = self._fresh_arrays()
        fresh, often = np.unique(terms.astype(np.uint64) << _PLACE_BITS | at, return_counts=True)
        keys, counts = fresh, often.astype(np.float32)
        if len(self._places):
            own = np.repeat(np.arange(len(self._starts) - 1, dtype=np.uint64), np.diff(self._starts))
            keys = np.concatenate([own << _PLACE_BITS | self._places, fresh])
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], np.concatenate([self._counts, counts])[order]
        ends = np.arange(int(keys[-1] >> _PLACE_BITS) + 2 if len(keys) else 1, dtype=np.uint64)
        self._starts = np.searchsorted(keys, ends << _PLACE_BITS)
        self._places, self._counts = keys.astype(np.uint32), counts
        self._fresh, self._occurrences = [], 0

    def _sorted(self, term: int) -> tuple[Places, Counts]:
        if term + 1 >= len(self._starts):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        there = slice(int(self._starts[term]), int(self._starts[term + 1]))
        return self._places[there].astype(np.int64), self._counts[there]

    def _fresh_arrays(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        if len(self._fresh) > 1:
            terms, places = zip(*self._fresh, strict=True)
            self._fresh = [(np.concatenate(terms), np.concatenate(places))]
        return self._fresh[0]
