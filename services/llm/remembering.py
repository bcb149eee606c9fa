"""Remembering: an embedder that does not embed anew what it was asked for a moment ago.

Resolving asks twice for the same names and sentences, to look for neighbours and to write them down. What is
kept are vectors under a digest of their text, never the text, and few enough to be forgotten soon.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from services.llm.port import Embedder, Vectors

MOST = 1_024
"""Vectors that are kept: of 384 floats they are a megabyte and a half."""


class Remembering:
    """Another embedder, with its latest vectors of stored texts at hand; questions pass through."""

    def __init__(self, embedder: Embedder, most: int = MOST) -> None:
        self._embedder = embedder
        self._most = most
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """As the port says; asks for each text that is not at hand once."""
        keys = [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
        ]
        known = {key: self._kept[key] for key in keys if key in self._kept}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing or not texts:
            made = await self._embedder.passages(list(missing.values()))
            if len(missing) == len(texts):
                self._keep(dict(zip(missing, (row.copy() for row in made), strict=True)))
                return made
            known |= zip(missing, (row.copy() for row in made), strict=True)
        self._keep(known)
        return np.stack([known[key] for key in keys])

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.queries(texts)

    def _keep(self, vectors: dict[bytes, Vectors]) -> None:
        for key, vector in vectors.items():
            self._kept[key] = vector
            self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
