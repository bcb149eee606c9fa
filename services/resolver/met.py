"""Met: what one attempt at a revision has read of a graph already, so that nothing is asked for twice."""

from collections.abc import Iterable, Mapping, Sequence

from services.domain.identity import Merge
from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope
from services.stores.graph.port import GraphStore, NodePair
from services.stores.memory.port import LogState, ReadingStore
from services.stores.paging import Listed, Page


class Met:
    """Answers as the stores do, and remembers.

    Good for as long as `known`, that of `state`, is the last revision: what another process writes meanwhile
    makes the attempt fail, and the next one has another. Every method raises StoreUnavailable.
    """

    def __init__(self, graph: GraphStore, readings: ReadingStore, state: LogState) -> None:
        self.known = state.current
        self.archived = state.archived
        """Whether anything may be in the archive."""
        self._merged = state.merged
        self._graph = graph
        self._readings = readings
        self._slots: dict[NodePair, Sequence[StatementId]] = {}
        self._keys: dict[EntityId, str | None] = {}
        self._first: dict[Page, Listed[Merge]] = {}

    async def slots(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        """See GraphStore."""
        unknown = [pair for pair in pairs if pair not in self._slots]
        if unknown:
            self._slots |= dict.fromkeys(unknown, ()) | dict(await self._graph.slots(scope, unknown))
        return {pair: self._slots[pair] for pair in pairs}

    async def of_predicate(
        self, scope: Scope, predicate: EntityId, target: EntityId | None, page: Page
    ) -> Listed[StatementId]:
        """See GraphStore. Not remembered."""
        return await self._graph.of_predicate(scope, predicate, target, page)

    async def keys(self, scope: Scope, entities: Iterable[EntityId]) -> Mapping[EntityId, str]:
        """The keys of those that are there."""
        asked = sorted(entities)
        unknown = [id for id in asked if id not in self._keys]
        if unknown:
            self._keys |= dict.fromkeys(unknown)
            self._keys |= {one.id: one.key for one in await self._graph.entities(scope, unknown)}
        return {id: key for id in asked if (key := self._keys[id]) is not None}

    async def list_merges(self, scope: Scope, page: Page) -> Listed[Merge]:
        """See ReadingStore."""
        if not self._merged:
            return Listed(())
        if page not in self._first:
            self._first[page] = await self._readings.list_merges(scope, page)
        return self._first[page]

    async def merges(self, scope: Scope, entities: Sequence[EntityId]) -> Sequence[Merge]:
        """See ReadingStore. Not remembered."""
        return await self._readings.merges(scope, entities)
