"""Turns: who stands beside whom in an episode, who speaks, and how words count that stand near each other."""

from array import array
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from services.domain.graph import EntityType
from services.domain.ids import EntityId, EpisodeId
from services.domain.memory import Passage
from services.domain.names import name_key
from services.recall.bm25 import Bm25, Scores
from services.recall.mentions import AliasTable
from services.stores.graph.port import Alias

SHARES = (0.6, 0.4, 0.3, 0.2)
"""What a word counts that is said one, two, three or four turns away. A question is often answered beside
the words that it repeats, and two turns that say half of it each are worth one that says all. Each word
counts once, where it stands nearest: said over and over it makes no turn better (sums did worse)."""

LIKE_SHARES = (0.8, 0.6)
"""The same for likeness to the question, one or two turns away. Cosines lie close together."""

_ASKS = ("?", "？")
_CLOSING = " \t\n\"'”’)）]】"
_TURN_BYTES = 400

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Turns:
    """The turns of one graph, by their place in the index of their words. Added in the order of places."""

    def __init__(self) -> None:
        self._at: dict[tuple[EpisodeId, int], int] = {}
        self._speakers = array("i")
        self._numbers: dict[str, int] = {}
        self._spelled: dict[str, str] = {}
        self._asks = array("b")
        self._beside: dict[int, Places] = {}
        self._names: AliasTable | None = None

    def __len__(self) -> int:
        return len(self._speakers)

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        return len(self) * _TURN_BYTES

    def add(self, passage: Passage) -> None:
        """Takes the next place."""
        self._at[passage.episode, passage.position] = len(self)
        key = name_key(passage.speaker)
        if key and key not in self._numbers:
            self._names = None
            self._spelled[key] = passage.speaker
        self._speakers.append(self._numbers.setdefault(key, len(self._numbers)) if key else -1)
        self._asks.append(passage.text.rstrip(_CLOSING).endswith(_ASKS))
        self._beside.clear()

    def windowed(self, index: Bm25, terms: Sequence[str]) -> Scores:
        """Scores of the index's documents, shape (documents,), in which nearby words count by `SHARES`."""
        total = np.zeros(len(index))
        for term in sorted(set(terms)):  # sums of floats depend on their order
            places, scores = index.weighed(term)
            if not len(places):
                continue
            best = np.zeros(len(index))
            best[places] = scores
            for distance, share in enumerate(SHARES, start=1):
                for step in (-distance, distance):
                    # A turn stands so far from one other at most, so that no place is met twice.
                    near = self._stepped(step)[places]
                    there = near >= 0
                    best[near[there]] = np.maximum(best[near[there]], share * scores[there])
            total += best
        return total

    def lifted(self, index: Bm25, hits: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
        """Hits by likeness, best first, in which each turn has at least its share of its neighbours'."""
        scores = np.zeros(len(index))
        elsewhere: list[tuple[str, float]] = []
        for id, score in hits:
            place = index.place(id)
            if place is None:
                elsewhere.append((id, score))
            else:
                scores[place] = score
        best = scores.copy()
        for distance, share in enumerate(LIKE_SHARES, start=1):
            for step in (-distance, distance):
                beside = self._stepped(step)
                best = np.maximum(best, np.where(beside >= 0, share * scores[beside], 0.0))
        found = [(index.ids[int(place)], float(best[place])) for place in np.flatnonzero(best > 0)]
        return sorted([*found, *elsewhere], key=lambda hit: (-hit[1], hit[0]))

    def named_in(self, question: str, others: Collection[str] = ()) -> frozenset[str]:
        """Keys of the speakers whom a question names; `others` are keys of names that it means as well.

        Empty when it names all that there are: then it tells nothing apart.
        """
        if self._names is None:
            self._names = _table(self._spelled)
        met = {EntityId(key) for key in others if key in self._numbers}
        met |= {one.id for mention in self._names.mentions(question) for one in mention.entities}
        return frozenset(met) if len(met) < len(self._numbers) else frozenset()

    def spoken_by(self, keys: Collection[str]) -> Mask:
        """Which turns these speakers have said, shape (turns,)."""
        numbers = [self._numbers[key] for key in sorted(keys) if key in self._numbers]
        return np.isin(np.frombuffer(self._speakers, dtype=np.int32), numbers)

    def is_by(self, place: int, keys: Collection[str]) -> bool:
        """Whether one of these speakers has said the turn at a place."""
        return any(self._numbers.get(key) == self._speakers[place] for key in keys)

    def asks(self, place: int) -> bool:
        """Whether the turn at a place is a question."""
        return bool(self._asks[place])

    def _stepped(self, step: int) -> Places:
        """For each place the place `step` turns further in its episode, -1 where there is none."""
        if step not in self._beside:
            places = np.full(len(self), -1, dtype=np.int64)
            for (episode, position), place in self._at.items():
                places[place] = self._at.get((episode, position + step), -1)
            self._beside[step] = places
        return self._beside[step]


def _table(spelled: dict[str, str]) -> AliasTable:
    """Speakers by their names, and by their first names where nobody else has that."""
    aliases = [Alias(key, EntityType.PERSON, EntityId(key), name) for key, name in sorted(spelled.items())]
    first = [
        (name_key(name.split()[0]), key) for key, name in sorted(spelled.items()) if len(name.split()) > 1
    ]
    for short, key in first:
        if short and [one for one, _ in first].count(short) == 1 and short not in spelled:
            aliases.append(Alias(short, EntityType.PERSON, EntityId(key), spelled[key].split()[0]))
    return AliasTable(aliases)
