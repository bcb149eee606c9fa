"""HotTexts: one graph's passages, packed, with what is told of their episodes, and what filters a search."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from services.domain.ids import EpisodeId, PassageId
from services.domain.memory import Passage
from services.recall.hot.arrays import Growing
from services.recall.hot.packing import Packed, pack, unpacked
from services.stores.memory.following import PlainPassage, Said, passage_of
from services.stores.vectors.port import VectorFilter
from services.stores.vectors.rows import digest, passage_text

Mask = npt.NDArray[np.bool_]

UNPACKED = 8_192
"""Passages shown lately that stay unpacked."""
_UNPACKED_BYTES = 800
_PASSAGE_BYTES = 500
_EPISODE_BYTES = 200
"""What Python keeps of one besides its piece: its id, its entries in arrays, dictionaries and sets."""


class HotTexts:
    """Answers as the text store does. Places are those of the order in which passages were put."""

    def __init__(self) -> None:
        self.ids: list[PassageId] = []
        self._places: dict[PassageId, int] = {}
        self._passages: list[Packed] = []
        self._episodes: set[EpisodeId] = set()
        self._said: list[Said] = []
        self._said_at = Growing()
        self._searchable = Growing()
        self._unpacked: dict[int, Passage] = {}
        self.held: list[PassageId] = []
        """Those that were held back when they were put: searched for once they are held no longer."""
        self._bytes = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        own = self._bytes + len(self._unpacked) * _UNPACKED_BYTES
        return own + len(self.ids) * _PASSAGE_BYTES + len(self._episodes) * _EPISODE_BYTES

    @property
    def episodes_held(self) -> frozenset[EpisodeId]:
        return frozenset(self._episodes)

    def put(self, episodes: Iterable[EpisodeId], passages: Sequence[tuple[PlainPassage, Said, bool]]) -> None:
        """Adds episodes with their passages, each with whether it is searched for; once."""
        self._episodes.update(episodes)
        ids = [passage.id for passage, _, _ in passages]
        self._places.update(zip(ids, range(len(self.ids), len(self.ids) + len(ids)), strict=True))
        self.ids += ids
        pieces = [pack(passage[1:]) for passage, _, _ in passages]
        self._passages += pieces
        self._bytes += sum(map(len, pieces))
        self._said += [said for _, said, _ in passages]
        self.held += [passage.id for passage, _, _ in passages if passage.held]
        self._said_at.extend([said.at for _, said, _ in passages])
        self._searchable.extend([searchable for _, _, searchable in passages])

    def passages(self, ids: Iterable[PassageId]) -> list[Passage]:
        return [self._at(self._places[id]) for id in dict.fromkeys(ids) if id in self._places]

    def said(self, ids: Iterable[PassageId]) -> dict[PassageId, Said]:
        places = self._places
        return {id: self._said[place] for id in ids if (place := places.get(id)) is not None}

    def text_digest(self, place: int) -> str:
        """Of the text that a passage's vector is of."""
        return digest(passage_text(_passage_of(self.ids[place], self._passages[place])))

    def _at(self, place: int) -> Passage:
        found = self._unpacked.get(place)
        if found is None:
            found = _passage_of(self.ids[place], self._passages[place])
            if len(self._unpacked) >= UNPACKED:
                self._unpacked.clear()
            self._unpacked[place] = found
        return found

    @property
    def searchable(self) -> Mask:
        mask: Mask = self._searchable.array.astype(bool)
        return mask

    def searched(self, where: VectorFilter) -> Mask:
        """What a dense search with this filter finds; of its fields `until` alone is known."""
        mask = self.searchable
        if where.until is not None:
            mask &= self._said_at.array < where.until
        return mask


def _passage_of(id: PassageId, piece: Packed) -> Passage:
    return passage_of(PlainPassage(id, *unpacked(piece)))
