"""A small real embedder: hashed words and character n-grams, so that texts that share words are close."""

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence

import numpy as np

from services.llm.port import Vectors

_WORD = re.compile(r"[\u3400-\u9fff]|\w+")


class HashEmbedder:
    """An Embedder without a model. The same text gives the same vector on every host."""

    def __init__(self, dimension: int = 128) -> None:
        self._dimension = dimension

    @property
    def name(self) -> str:
        return f"hash-{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def passages(self, texts: Sequence[str]) -> Vectors:
        return hashed(texts, self._dimension)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return hashed(texts, self._dimension)


def hashed(texts: Sequence[str], dimension: int) -> Vectors:
    """Unit vectors, shape (len(texts), dimension). A text without words gets the first axis."""
    matrix = np.zeros((len(texts), dimension), np.float32)
    for row, text in enumerate(texts):
        for feature, weight in _features(text.lower()):
            digest = hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest()
            sign = 1.0 if digest[7] & 1 else -1.0
            matrix[row, int.from_bytes(digest[:6], "big") % dimension] += sign * weight
        if not matrix[row].any():
            matrix[row, 0] = 1.0
    unit: Vectors = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return unit


def _features(text: str) -> Iterator[tuple[str, float]]:
    words = _WORD.findall(text)
    for word in words:
        yield f"w:{word}", 1.0
        padded = f"^{word}$"
        for at in range(len(padded) - 2):
            yield f"c:{padded[at : at + 3]}", 0.4
    for left, right in itertools.pairwise(words):
        yield f"b:{left} {right}", 0.5
