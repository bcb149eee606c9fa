"""QueryVectors: the vectors of questions asked lately, each graph's own: none tells of another's."""

import asyncio
import hashlib
from collections import OrderedDict
from functools import partial

from services.domain.scope import Scope, TenantId
from services.llm.port import Embedder
from services.stores.vectors.port import Vector

KEPT = 4_096
"""Questions of all graphs that are remembered: some 7 MB. By their hashes: no word of them stays."""


class QueryVectors:
    """Embeds questions, and remembers those of the same graph.

    One that several graphs of a tenant are asked at once is embedded once.
    """

    def __init__(self, embedder: Embedder, kept: int = KEPT) -> None:
        self._embedder = embedder
        self._kept = kept
        self._known: OrderedDict[tuple[Scope, bytes], Vector] = OrderedDict()
        self._coming: dict[tuple[TenantId, bytes], asyncio.Task[Vector]] = {}

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
            found = await self._embedded((scope.tenant, key[1]), query)
            self._known[key] = found
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return found

    async def _embedded(self, asked: tuple[TenantId, bytes], query: str) -> Vector:
        coming = self._coming.get(asked)
        if coming is None:
            coming = self._coming[asked] = asyncio.create_task(self._embed(query))
            coming.add_done_callback(partial(self._came, asked))
        # Who gives up must not take it from the others.
        return await asyncio.shield(coming)

    def _came(self, asked: tuple[TenantId, bytes], coming: asyncio.Task[Vector]) -> None:
        del self._coming[asked]
        if not coming.cancelled():
            coming.exception()  # nobody may be waiting any more

    async def _embed(self, query: str) -> Vector:
        found: Vector = (await self._embedder.queries([query]))[0]
        return found
