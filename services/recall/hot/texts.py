"""HotTexts: one graph's passages, packed, with what is told of their episodes, and what filters a search."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from services.domain.ids import EpisodeId, PassageId
from services.domain.memory import Passage
from services.recall.hot.arrays import Growing
from services.recall.hot.packing import Packed, pack, unpacked
from services.recall.states import State
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

    def __init__(self, state: State | None = None) -> None:
        """`state`: another one's."""
        held = state or {}
        self.ids: list[PassageId] = [*held.get("ids", ())]
        self._places = {id: place for place, id in enumerate(self.ids)}
        self._passages: list[Packed] = [*held.get("passages", ())]
        self._episodes: set[EpisodeId] = {*held.get("episodes", ())}
        self._said = [*map(Said._make, held.get("said", ()))]
        self._said_at = Growing()
        self._said_at.extend([said.at for said in self._said])
        self._searchable = Growing()
        self._searchable.extend(held.get("searchable", ()))
        self._unpacked: dict[int, Passage] = {}
        self.held: list[PassageId] = [*held.get("held", ())]
        """Those that were held back when they were put: searched for once they are held no longer."""
        self._bytes = sum(map(len, self._passages))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        own = self._bytes + len(self._unpacked) * _UNPACKED_BYTES
        return own + len(self.ids) * _PASSAGE_BYTES + len(self._episodes) * _EPISODE_BYTES

    @property
    def state(self) -> State:
        """All that it holds, as it is now."""
        return {
            "ids": [*self.ids],
            "passages": [*self._passages],
            "episodes": [*self._episodes],
            "said": [*map(tuple, self._said)],
            "searchable": self._searchable.array.copy(),
            "held": [*self.held],
        }

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
