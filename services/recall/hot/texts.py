"""HotTexts: one graph's passages with their episodes, packed, and what a search of them is filtered by."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from services.domain.ids import EpisodeId, PassageId
from services.domain.instants import Instant
from services.domain.memory import Episode, EpisodeKind, Passage, Role
from services.recall.hot.arrays import Growing
from services.recall.hot.packing import Packed, pack, unpacked
from services.stores.vectors.port import VectorFilter
from services.stores.vectors.rows import digest, passage_text

Mask = npt.NDArray[np.bool_]

UNPACKED = 8_192
"""Passages, and episodes, shown lately, that stay unpacked."""
_UNPACKED_BYTES = 800
_PASSAGE_BYTES = 500
_EPISODE_BYTES = 400
"""What Python keeps of one besides its piece: its id, its entries in arrays and dictionaries."""


class Said(NamedTuple):
    """When a passage was said, in which episode, and when that was saved; the episode is not deleted."""

    at: Instant
    episode: EpisodeId
    saved_at: Instant


class HotTexts:
    """Answers as the text store does. Places are those of the order in which passages were put."""

    def __init__(self) -> None:
        self.ids: list[PassageId] = []
        self._places: dict[PassageId, int] = {}
        self._passages: list[Packed] = []
        self._episodes: dict[EpisodeId, Packed] = {}
        self._said: list[Said] = []
        self._said_at = Growing()
        self._searchable = Growing()
        self._unpacked: dict[int, Passage] = {}
        self._unpacked_episodes: dict[EpisodeId, Episode] = {}
        self.held: list[PassageId] = []
        """Those that were held back when they were put: searched for once they are held no longer."""
        self._bytes = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        unpacked = len(self._unpacked) + len(self._unpacked_episodes)
        own = self._bytes + unpacked * _UNPACKED_BYTES
        return own + len(self.ids) * _PASSAGE_BYTES + len(self._episodes) * _EPISODE_BYTES

    @property
    def episodes_held(self) -> frozenset[EpisodeId]:
        return frozenset(self._episodes)

    def put(self, episode: Episode, passages: Iterable[tuple[Passage, bool]]) -> None:
        """Adds an episode with its passages, each with whether it is searched for; once."""
        piece = pack(_episode(episode))
        self._episodes[episode.id] = piece
        self._bytes += len(piece)
        for passage, searchable in passages:
            self._places[passage.id] = len(self.ids)
            self.ids.append(passage.id)
            piece = pack(_passage(passage))
            self._passages.append(piece)
            self._bytes += len(piece)
            said_at = episode.reference_time if passage.said_at is None else passage.said_at
            self._said.append(Said(said_at, episode.id, episode.created_at))
            self._said_at.append(said_at)
            self._searchable.append(searchable)
            if passage.held:
                self.held.append(passage.id)

    def passages(self, ids: Iterable[PassageId]) -> list[Passage]:
        return [self._at(self._places[id]) for id in dict.fromkeys(ids) if id in self._places]

    def said(self, ids: Iterable[PassageId]) -> dict[PassageId, Said]:
        places = self._places
        return {id: self._said[place] for id in ids if (place := places.get(id)) is not None}

    def episodes(self, ids: Iterable[EpisodeId]) -> list[Episode]:
        return [self._episode(id) for id in dict.fromkeys(ids) if id in self._episodes]

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

    def _episode(self, id: EpisodeId) -> Episode:
        found = self._unpacked_episodes.get(id)
        if found is None:
            found = _episode_of(id, self._episodes[id])
            if len(self._unpacked_episodes) >= UNPACKED:
                self._unpacked_episodes.clear()
            self._unpacked_episodes[id] = found
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


def _passage(one: Passage) -> tuple[Any, ...]:
    where = one.episode, one.position, one.text, one.start, one.end
    return *where, one.hash, one.speaker, str(one.role.value), one.message_id, one.said_at, one.held


def _passage_of(id: PassageId, piece: Packed) -> Passage:
    episode, position, text, start, end, hash, speaker, role, message_id, said_at, held = unpacked(piece)
    return Passage(
        id, episode, position, text, start, end, hash, speaker, Role(role), message_id, said_at, held
    )


def _episode(one: Episode) -> tuple[Any, ...]:
    times = one.reference_time, one.created_at
    of_document = one.document, one.version, one.heading, one.title, one.source, one.metadata
    gone = one.deleted_at, one.unlearned_at, one.held
    return (
        one.job,
        str(one.kind.value),
        one.text,
        *times,
        one.tokens,
        one.position,
        one.session,
        *of_document,
        *gone,
    )


def _episode_of(id: EpisodeId, piece: Packed) -> Episode:
    job, kind, *rest = unpacked(piece)
    return Episode(id, job, EpisodeKind(kind), *rest)
