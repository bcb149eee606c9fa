"""HotVoices: one graph's voice aspects, as they are: there are few."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from services.domain.ids import VoiceId
from services.domain.memory import VoiceAspect
from services.stores.vectors.port import VectorFilter
from services.stores.vectors.rows import digest, voice_text

_RECORD_BYTES = 600
"""What Python keeps of an aspect, of a claim or of an end, besides its text."""


class HotVoices:
    """Answers as the voice store does. Places are those of the order in which aspects were put first."""

    def __init__(self) -> None:
        self.ids: list[VoiceId] = []
        self._places: dict[VoiceId, int] = {}
        self._aspects: list[VoiceAspect] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.ids)

    def put(self, aspects: Iterable[VoiceAspect]) -> list[int]:
        """Adds or replaces aspects; answers the places of those that were there with another text."""
        retold: list[int] = []
        for aspect in aspects:
            place = self._places.setdefault(aspect.id, len(self.ids))
            if place == len(self.ids):
                self.ids.append(aspect.id)
                self._aspects.append(aspect)
            else:
                self.bytes -= _size(self._aspects[place])
                if self._aspects[place].text != aspect.text:
                    retold.append(place)
                self._aspects[place] = aspect
            self.bytes += _size(aspect)
        return retold

    def __iter__(self) -> Iterator[VoiceAspect]:
        return iter(self._aspects)

    def aspects(self, ids: Iterable[VoiceId]) -> list[VoiceAspect]:
        return [self._aspects[self._places[id]] for id in dict.fromkeys(ids) if id in self._places]

    def text_digest(self, place: int) -> str:
        """Of the text that an aspect's vector is of."""
        return digest(voice_text(self._aspects[place]))

    def searched(self, where: VectorFilter) -> npt.NDArray[np.bool_]:
        """What a dense search with this filter finds; of its fields `aspects` alone is known."""
        return np.array(
            [bool(one.text) and (not where.aspects or one.kind in where.aspects) for one in self._aspects],
            dtype=np.bool_,
        )


def _size(aspect: VoiceAspect) -> int:
    return (1 + len(aspect.claims) + len(aspect.ends)) * _RECORD_BYTES + len(aspect.text)
