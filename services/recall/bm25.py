"""BM25 over the documents of one scope, in compact arrays; nothing is counted over several scopes.

Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with the idf that is never negative.
"""

import math
from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from services.recall.highest import nth_highest
from services.recall.postings import Postings
from services.recall.states import State, nested, within

K1 = 1.2
B = 0.5
"""Half of the usual correction for length: turns are short, and a longer one is seldom just wordier."""

_TERM_BYTES = 150
"""What Python keeps for a term besides its postings: its text, its number, an entry."""
_DOCUMENT_BYTES = 200
"""The same for a document: its id, its place, its length."""
_HEAD_BYTES = 8
_TERMS_KEPT = 16
"""Terms whose weights are remembered until a document comes."""

Scores = npt.NDArray[np.float64]
Weighed = tuple[npt.NDArray[np.int64] | slice, npt.NDArray[np.float32]]
_EVERYWHERE = slice(None)


class _Numbers(dict[str, int]):
    """Terms in the order in which they came; one that is looked up by `[]` comes."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class Bm25:
    """Documents by id. A document is added once, and none is taken out: what lost one is built anew."""

    def __init__(self, state: State | None = None) -> None:
        """`state`: another one's."""
        held = state or {}
        self.ids: list[str] = [*held.get("ids", ())]
        self._places = {id: place for place, id in enumerate(self.ids)}
        self._terms = _Numbers({term: number for number, term in enumerate(held.get("terms", ()))})
        self._lengths = array("f", np.asarray(held.get("lengths", []), dtype=np.float32).tobytes())
        self._norms: npt.NDArray[np.float32] | None = None
        self._heads = np.zeros(0, dtype=np.uint64)
        self._weighed: dict[str, Weighed] = {}
        self._postings = Postings(within("postings", held))

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: str) -> bool:
        return id in self._places

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        own = self._postings.bytes + len(self._terms) * _TERM_BYTES + len(self.ids) * _DOCUMENT_BYTES
        for places, found in self._weighed.values():
            own += found.nbytes + (0 if isinstance(places, slice) else places.nbytes)
        return own

    @property
    def state(self) -> State:
        """All that it holds, as it is now."""
        lengths = np.array(self._lengths, dtype=np.float32)
        own: State = {"ids": [*self.ids], "terms": [*self._terms], "lengths": lengths}
        return {**own, **nested("postings", self._postings.state)}

    @property
    def words(self) -> set[str]:
        """Every term of every document."""
        return set(self._terms)

    def place(self, id: str) -> int | None:
        """Where a document stands in `ids` and in scores."""
        return self._places.get(id)

    def places(self, ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Where each of some documents stands, -1 for one that is not here."""
        places = self._places
        return np.array([places.get(id, -1) for id in ids], dtype=np.int64)

    def add(self, id: str, terms: Sequence[str]) -> None:
        """Adds a document; one that is there already stays as it is."""
        self.add_all([(id, terms)])

    def add_all(self, documents: Iterable[tuple[str, Sequence[str]]]) -> None:
        """The same for many."""
        self._norms = None
        self._weighed.clear()
        places, first = self._places, len(self.ids)
        numbers: list[int] = []
        lengths: list[int] = []
        for id, terms in documents:
            if id in places:
                continue
            places[id] = len(self.ids)
            self.ids.append(id)
            numbers += map(self._terms.__getitem__, terms)
            lengths.append(len(terms))
        self._lengths.extend(lengths)
        self._postings.add(first, numbers, lengths)

    def sort_in(self) -> None:
        """After many came: what the first question would do else. Answers nothing else than before."""
        self._postings.sort_in()

    def idf(self, term: str) -> float:
        """How much a term tells: most for one that no document has."""
        number = self._terms.get(term)
        return self._idf(0 if number is None else len(self._postings.of(number)[0]))

    def _idf(self, having: int) -> float:
        return math.log(1 + (len(self.ids) - having + 0.5) / (having + 0.5))

    def scores(self, terms: Sequence[str]) -> Scores:
        """The score of every document, shape (documents,); 0 where no term is in it."""
        scores = np.zeros(len(self.ids))
        # Sorted: sums of floats depend on their order.
        for term in sorted(set(terms)):
            places, found = self.weighed(term)
            scores[places] += found
        return scores

    def weighed(self, term: str) -> Weighed:
        """Where a term is, and what it adds to the score there; both of shape (documents that have it,).

        Of a term that most have: everywhere, nothing where it isn't; to add that up is many times quicker.
        """
        # One question asks for its terms several times, and for few.
        found = self._weighed.get(term)
        if found is None:
            if len(self._weighed) >= _TERMS_KEPT:
                self._weighed.clear()
            found = self._weighed[term] = self._weigh(term)
        return found

    def _weigh(self, term: str) -> Weighed:
        number = self._terms.get(term)
        if number is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        if self._norms is None:
            lengths = np.array(self._lengths, dtype=np.float32)
            self._norms = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
        places, counts = self._postings.of(number)
        found = self._idf(len(places)) * counts * (K1 + 1) / (counts + self._norms[places])
        if 2 * len(places) < len(self.ids):
            return places, found
        every = np.zeros(len(self.ids), dtype=np.float32)
        every[places] = found
        return _EVERYWHERE, every

    def told(self, scores: Scores, ids: Sequence[str]) -> list[tuple[str, float]]:
        """Documents that are here, each with its score."""
        here = [id for id in ids if id in self._places]
        return list(zip(here, scores[self.places(here)].tolist(), strict=True))

    def best(self, scores: Scores, limit: int) -> list[tuple[str, float]]:
        """The ids of the highest positive scores, best first, equal ones by id."""
        least, last = 0.0, list[tuple[str, float]]()
        if np.count_nonzero(scores > 0) > limit:
            least = float(nth_highest(scores, limit))
            last = [(id, least) for id in self._first_ids(np.flatnonzero(scores == least), limit)]
        places = np.flatnonzero(scores > least)
        ranked = sorted(
            (-score, self.ids[place])
            for score, place in zip(scores[places].tolist(), places.tolist(), strict=True)
        )
        return [*((id, -score) for score, id in ranked), *last][:limit]

    def _first_ids(self, places: npt.NDArray[np.int64], limit: int) -> list[str]:
        """The ids of some places, in their order, the first of them alone."""
        # Of those that are equal to the last one there may be thousands: numbers sort faster than texts.
        if len(places) > limit:
            heads = self._heads_of_ids()[places]
            places = places[~heads >= nth_highest(~heads, limit)]
        return sorted([self.ids[place] for place in places.tolist()])[:limit]

    def _heads_of_ids(self) -> npt.NDArray[np.uint64]:
        """The beginning of each id as a number: numbers are in the order of ids, as far as they tell."""
        fresh = self.ids[len(self._heads) :]
        if fresh:
            # UTF-8 is in the order of code points.
            heads = np.array([id.encode() for id in fresh], dtype=f"S{_HEAD_BYTES}")
            self._heads = np.concatenate([self._heads, heads.view(">u8").astype(np.uint64)])
        return self._heads
