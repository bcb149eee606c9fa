"""An embedder that a test tells which texts mean the same; of all others it is a HashEmbedder."""

from collections.abc import Sequence

from services.llm.port import Vectors
from tests.doubles.embedder import HashEmbedder, hashed


class MeaningEmbedder(HashEmbedder):
    """Texts of one group have one vector."""

    def __init__(self, *groups: Sequence[str]) -> None:
        super().__init__()
        self._meaning = {text: f"meaning {at}" for at, group in enumerate(groups) for text in group}
        self.embedded: list[str] = []
        """Every text that was embedded, in order."""

    async def passages(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return hashed([self._meaning.get(text, text) for text in texts], self.dimension)
