"""QueryVectors: the vectors of questions asked lately, each graph's own: none tells of another's."""

import hashlib
from collections import OrderedDict

from services.domain.scope import Scope
from services.llm.port import Embedder
from services.stores.vectors.port import Vector

KEPT = 4_096
"""Questions of all graphs that are remembered: some 7 MB. By their hashes: no word of them stays."""


class QueryVectors:
    """Embeds questions, and remembers those of the same graph."""

    def __init__(self, embedder: Embedder, kept: int = KEPT) -> None:
        self._embedder = embedder
        self._kept = kept
        self._known: OrderedDict[tuple[Scope, bytes], Vector] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def drop(self, scope: Scope) -> None:
        """Forgets the questions of a graph."""
        for key in [key for key in self._known if key[0] == scope]:
            del self._known[key]

    async def of(self, scope: Scope, query: str) -> Vector:
        """A unit vector. Raises EngineError."""
        key = (scope, hashlib.blake2b(query.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        found = self._known.get(key)
        if found is None:
            found = (await self._embedder.queries([query]))[0]
            self._known[key] = found
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return found
