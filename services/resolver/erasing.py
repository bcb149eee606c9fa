"""Erasing a graph: every store of the services is emptied behind a fence, and looked at anew."""

from collections.abc import Mapping

from palimpsest.internal.v1 import erasing_pb2 as pb
from services.domain.errors import Conflict
from services.domain.scope import Scope
from services.stores.graph.port import CompactsFiles, GraphStore
from services.stores.memory.port import ErasableMemory
from services.stores.vectors.errors import NotErased
from services.stores.vectors.port import Collection, Consistency, VectorStore

Rows = Mapping[str, Mapping[str, int]]
"""How much there is, by store and kind."""


class ScopeErasing:
    """Erases a graph with everything that the services keep of it. Each step is idempotent.

    It is the one writer of text beside the preprocessor: a graph goes from memory in one transaction.
    """

    def __init__(self, graph: GraphStore, memory: ErasableMemory, vectors: VectorStore) -> None:
        self._graph = graph
        self._memory = memory
        self._fences = memory.fences
        self._vectors = vectors

    async def rows(self, scope: Scope) -> Rows:
        """What there is, read strongly: what anybody wrote before is seen. Raises StoreUnavailable."""
        vectors = {
            collection.value: await self._vectors.count(scope, collection, Consistency.STRONG)
            for collection in Collection
        }
        return {
            "graph": await self._graph.rows(scope),
            "memory": await self._memory.rows(scope),
            "vectors": {kind: count for kind, count in vectors.items() if count},
        }

    async def generation(self, scope: Scope) -> int:
        return (await self._fences.fence(scope)).generation

    async def erase(self, scope: Scope, generation: int | None = None) -> Rows:
        """Puts the fence up, and removes everything; answers what is left.

        Memory first: without text, intents and revisions nobody completes what a crash left half way.
        Raises StoreUnavailable, Conflict (somebody writes vectors still), WriteConflict (`generation`, which
        the caller read, is over).
        """
        await self._fences.put_up(scope, generation)
        await self._memory.erase(scope)
        await self._graph.erase(scope)
        try:
            await self._vectors.erase(scope)
        except NotErased as error:
            raise Conflict from error
        return await self.rows(scope)

    async def swept(self, scope: Scope) -> None:
        """Removes what a writer who was overtaken by an erasure has written, if nothing is there since."""
        await self._graph.erase(scope)
        await self._memory.erase(scope)
        await self._vectors.erase(scope)

    async def open(self, scope: Scope, generation: int | None = None) -> None:
        """Writes embedded files anew without what was deleted, and takes the fence down.

        Raises WriteConflict when `generation` is over.
        """
        await self._memory.compact()
        if isinstance(self._graph, CompactsFiles):
            await self._graph.compact()
        await self._fences.take_down(scope, generation)


def stores_out(rows: Rows) -> list[pb.StoreRows]:
    return [pb.StoreRows(store=store, rows=dict(found)) for store, found in sorted(rows.items())]
