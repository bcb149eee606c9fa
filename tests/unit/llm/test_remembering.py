"""An embedder that remembers: the same vectors, fewer calls, nothing kept beyond its bound."""

from collections.abc import Sequence

import numpy as np

from services.llm.port import Vectors
from services.llm.remembering import Remembering
from tests.doubles.embedder import HashEmbedder


class Counting(HashEmbedder):
    """Keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    async def passages(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return await super().passages(texts)


async def test_what_is_at_hand_is_not_asked_for_again() -> None:
    inner = Counting()
    embedder = Remembering(inner, most=3)
    plain = HashEmbedder()
    for texts in (["a", "b"], ["b", "c", "b"], ["a", "b", "c"], [], ["d", "d"], ["a"]):
        found = await embedder.passages(texts)
        assert found.shape == (len(texts), plain.dimension)
        assert np.array_equal(found, await plain.passages(texts))
    assert inner.asked == [["a", "b"], ["c"], [], ["d"], ["a"]]
