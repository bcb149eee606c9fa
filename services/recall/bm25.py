"""BM25 over the documents of one scope, in compact arrays; nothing is counted over several scopes.

Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with the idf that is never negative.
"""

import math
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

K1 = 1.2
B = 0.5
"""Half of the usual correction for length: turns are short, and a longer one is seldom just wordier."""

_TERM_BYTES = 300
"""What Python keeps for a term besides its postings: two arrays, an entry, the text."""
_DOCUMENT_BYTES = 200
"""The same for a document: its id, its place, its length."""

Scores = npt.NDArray[np.float64]


class Bm25:
    """Documents by id. A document is added once, and none is taken out: what lost one is built anew."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._places: dict[str, int] = {}
        self._terms: dict[str, tuple[array[int], array[float]]] = {}
        self._lengths = array("f")
        self._postings = 0

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: str) -> bool:
        return id in self._places

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        return self._postings * 8 + len(self._terms) * _TERM_BYTES + len(self.ids) * _DOCUMENT_BYTES

    @property
    def words(self) -> set[str]:
        """Every term of every document."""
        return set(self._terms)

    def place(self, id: str) -> int | None:
        """Where a document stands in `ids` and in scores."""
        return self._places.get(id)

    def add(self, id: str, terms: Sequence[str]) -> None:
        """Adds a document; one that is there already stays as it is."""
        if id in self._places:
            return
        place = len(self.ids)
        self._places[id] = place
        self.ids.append(id)
        self._lengths.append(len(terms))
        for term, count in Counter(terms).items():
            places, counts = self._terms.setdefault(term, (array("I"), array("f")))
            places.append(place)
            counts.append(count)
            self._postings += 1

    def idf(self, term: str) -> float:
        """How much a term tells: most for one that no document has."""
        found = self._terms.get(term)
        having = len(found[0]) if found else 0
        return math.log(1 + (len(self.ids) - having + 0.5) / (having + 0.5))

    def scores(self, terms: Sequence[str]) -> Scores:
        """The score of every document, shape (documents,); 0 where no term is in it."""
        scores = np.zeros(len(self.ids))
        # Sorted: sums of floats depend on their order.
        for term in sorted(set(terms)):
            places, found = self.weighed(term)
            scores[places] += found
        return scores

    def weighed(self, term: str) -> tuple[npt.NDArray[np.int64], Scores]:
        """Where a term is, and what it adds to the score there; both of shape (documents that have it,)."""
        if term not in self._terms:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        lengths = np.frombuffer(self._lengths, dtype=np.float32)
        places = np.frombuffer(self._terms[term][0], dtype=np.uint32).astype(np.int64)
        counts = np.frombuffer(self._terms[term][1], dtype=np.float32)
        norms = K1 * (1 - B + B * lengths[places] / max(float(lengths.mean()), 1.0))
        return places, self.idf(term) * counts * (K1 + 1) / (counts + norms)

    def best(self, scores: Scores, limit: int) -> list[tuple[str, float]]:
        """The ids of the highest positive scores, best first, equal ones by id."""
        places = np.flatnonzero(scores > 0)
        if len(places) > limit:
            least = np.partition(scores[places], len(places) - limit)[len(places) - limit]
            places = places[scores[places] >= least]
        ranked = sorted((-float(scores[place]), self.ids[place]) for place in places)
        return [(id, -score) for score, id in ranked[:limit]]
