"""Reads: what a question reads, from memory where its graph is held there, else from the stores.

An index that has reached a revision answers for it and for all before, as the store would.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from services.domain.graph import Entity
from services.domain.ids import EntityId, EpisodeId, PassageId, Revision, StatementId, VoiceId
from services.domain.instants import Instant
from services.domain.memory import Episode, Passage, VoiceAspect
from services.domain.scope import Scope
from services.stores.graph.port import (
    NOBODY,
    AsOf,
    GraphStore,
    NodePair,
    Records,
    StatementFilter,
    StatementView,
    Step,
    Together,
)
from services.stores.memory.following import Said, said_of
from services.stores.memory.port import EpisodeFilter, RevisionLog, TextStore, VoiceStore
from services.stores.paging import Listed, Page
from services.stores.vectors.port import Collection, Consistency, Hit, Vector, VectorFilter, VectorStore

if TYPE_CHECKING:
    from services.recall.facts_index import FactsIndex
    from services.recall.shelf import Shelf
    from services.recall.texts_index import TextsIndex


class GraphReads(Protocol):
    """Part of GraphStore (services/stores/graph/port.py), which see."""

    async def entities(self, scope: Scope, ids: Sequence[EntityId]) -> Sequence[Entity]: ...

    async def find_entities(
        self, scope: Scope, keys: Sequence[str], known_at: Revision
    ) -> Mapping[str, Sequence[Entity]]: ...

    async def views(self, scope: Scope, ids: Sequence[StatementId], at: AsOf) -> Sequence[StatementView]: ...

    async def records(self, scope: Scope, ids: Sequence[StatementId]) -> Records: ...

    async def slots(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]: ...

    async def walk(
        self,
        scope: Scope,
        seeds: Sequence[EntityId],
        at: AsOf,
        max_hops: int,
        per_level: int,
        together: Together = NOBODY,
    ) -> Sequence[Step]: ...


class TextReads(Protocol):
    """Part of TextStore (services/stores/memory/port.py), which see; and `said`, of what is not deleted."""

    async def said(self, scope: Scope, ids: Sequence[PassageId]) -> Mapping[PassageId, Said]: ...

    async def passages(self, scope: Scope, ids: Sequence[PassageId]) -> Sequence[Passage]: ...

    async def passages_of(self, scope: Scope, episode: EpisodeId) -> Sequence[Passage]: ...

    async def latest_episodes(self, scope: Scope, where: EpisodeFilter, page: Page) -> Listed[Episode]: ...


class VoiceReads(Protocol):
    """Part of VoiceStore (services/stores/memory/port.py), which see."""

    async def aspects(self, scope: Scope, ids: Sequence[VoiceId]) -> Sequence[VoiceAspect]: ...


class Clocks(Protocol):
    """Part of RevisionLog (services/stores/memory/port.py), which see."""

    async def clocks(self, scope: Scope, revisions: Sequence[Revision]) -> Mapping[Revision, Instant]: ...


class Searches(Protocol):
    """Part of VectorStore (services/stores/vectors/port.py), which see."""

    async def search(
        self,
        scope: Scope,
        collection: Collection,
        vectors: Sequence[Vector],
        limit: int,
        where: VectorFilter = VectorFilter(),  # noqa: B008 - a frozen value
        consistency: Consistency = Consistency.SESSION,
    ) -> Sequence[Sequence[Hit]]: ...


class FactReads:
    """GraphReads and Clocks of graphs whose facts are held, and of all others."""

    def __init__(
        self, graph: GraphStore, log: RevisionLog, shelf: "Shelf[FactsIndex]", hot: bool = True
    ) -> None:
        """`hot` False: all are as those that are not held."""
        self._hot = hot
        self._graph = graph
        self._log = log
        self._shelf = shelf

    def reached(self, scope: Scope, current: Revision) -> bool:
        """Whether a graph is held as of a revision: records and names are read as what is held has them."""
        return self._held(scope, current) is not None

    async def entities(self, scope: Scope, ids: Sequence[EntityId]) -> Sequence[Entity]:
        """See the port. What no statement names is not held, and asked for."""
        index = self._held(scope)
        found = {} if index is None else index.hot.nodes.among(ids)
        missing = [id for id in ids if id not in found]
        if missing:
            found |= {one.id: one for one in await self._graph.entities(scope, missing)}
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    async def find_entities(
        self, scope: Scope, keys: Sequence[str], known_at: Revision
    ) -> Mapping[str, Sequence[Entity]]:
        return await self._graph.find_entities(scope, keys, known_at)

    async def views(self, scope: Scope, ids: Sequence[StatementId], at: AsOf) -> Sequence[StatementView]:
        index = self._held(scope, at.known_at)
        return await self._graph.views(scope, ids, at) if index is None else index.hot.views(ids, at)

    async def records(self, scope: Scope, ids: Sequence[StatementId]) -> Records:
        index = self._held(scope)
        if index is None or not index.hot.has(ids):
            return await self._graph.records(scope, ids)
        return index.hot.records(ids)

    async def slots(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        index = self._held(scope)
        return await self._graph.slots(scope, pairs) if index is None else index.hot.slots(pairs)

    async def first(
        self, scope: Scope, where: StatementFilter, at: AsOf, limit: int
    ) -> Sequence[StatementView]:
        """The first page of `list_statements`; not by `episodes`, `invalidated_by` or `contested`."""
        assert not where.episodes, "no question asks by these"
        assert where.invalidated_by is None, "no question asks by these"
        assert where.contested is None, "no question asks by these"
        index = self._held(scope, at.known_at)
        if index is None:
            return (await self._graph.list_statements(scope, where, at, Page(limit))).items
        return index.hot.statements(where, at, limit)

    async def walk(
        self,
        scope: Scope,
        seeds: Sequence[EntityId],
        at: AsOf,
        max_hops: int,
        per_level: int,
        together: Together = NOBODY,
    ) -> Sequence[Step]:
        index = self._held(scope, at.known_at)
        if index is None:
            return await self._graph.walk(scope, seeds, at, max_hops, per_level, together)
        return index.hot.walk(seeds, at, max_hops, per_level, together)

    async def clocks(self, scope: Scope, revisions: Sequence[Revision]) -> Mapping[Revision, Instant]:
        """See the port. When a revision was begun never changes: it is asked for once."""
        index = self._held(scope)
        if index is None:
            return await self._log.clocks(scope, revisions)
        missing = [revision for revision in revisions if revision not in index.clocks]
        if missing:
            index.clocks |= await self._log.clocks(scope, missing)
        return {revision: index.clocks[revision] for revision in revisions if revision in index.clocks}

    def _held(self, scope: Scope, known_at: Revision | None = None) -> "FactsIndex | None":
        index = self._shelf.held(scope)
        if not self._hot or index is None:
            return None
        return index if known_at is None or known_at <= index.revision else None


class SaidReads:
    """TextReads and VoiceReads of graphs whose texts are held, and of all others."""

    def __init__(
        self, text: TextStore, voice: VoiceStore, shelf: "Shelf[TextsIndex]", hot: bool = True
    ) -> None:
        """`hot` False: all are as those that are not held."""
        self._hot = hot
        self._text = text
        self._voice = voice
        self._shelf = shelf

    async def said(self, scope: Scope, ids: Sequence[PassageId]) -> Mapping[PassageId, Said]:
        """When passages were said, in their order; of those that are there and whose episode is."""
        index = self._held(scope)
        if index is not None:
            return index.texts.said(ids)
        passages = await self._text.passages(scope, ids)
        wanted = list(dict.fromkeys(passage.episode for passage in passages))
        kept = {one.id: one for one in await self._text.episodes(scope, wanted) if one.deleted_at is None}
        return {one.id: said_of(one, kept[one.episode]) for one in passages if one.episode in kept}

    async def passages(self, scope: Scope, ids: Sequence[PassageId]) -> Sequence[Passage]:
        index = self._held(scope)
        return await self._text.passages(scope, ids) if index is None else index.texts.passages(ids)

    async def passages_of(self, scope: Scope, episode: EpisodeId) -> Sequence[Passage]:
        return await self._text.passages_of(scope, episode)

    async def latest_episodes(self, scope: Scope, where: EpisodeFilter, page: Page) -> Listed[Episode]:
        return await self._text.latest_episodes(scope, where, page)

    async def aspects(self, scope: Scope, ids: Sequence[VoiceId]) -> Sequence[VoiceAspect]:
        index = self._held(scope)
        return await self._voice.aspects(scope, ids) if index is None else index.voices.aspects(ids)

    def _held(self, scope: Scope) -> "TextsIndex | None":
        return self._shelf.held(scope) if self._hot else None


class VectorSearches:
    """Searches of graphs whose vectors are held, exactly; the vector store's for all others."""

    def __init__(
        self, vectors: VectorStore, facts: "Shelf[FactsIndex]", texts: "Shelf[TextsIndex]", hot: bool = True
    ) -> None:
        """`hot` False: all are as those that are not held."""
        self._hot = hot
        self._vectors = vectors
        self._facts = facts
        self._texts = texts

    async def search(
        self,
        scope: Scope,
        collection: Collection,
        vectors: Sequence[Vector],
        limit: int,
        where: VectorFilter = VectorFilter(),  # noqa: B008 - a frozen value
        consistency: Consistency = Consistency.SESSION,
    ) -> Sequence[Sequence[Hit]]:
        """See the port. In memory what was published is there: every consistency is the strongest."""
        asked = (*where.subjects, *where.sessions, *where.ids)
        assert not asked, "no question asks by these"
        index = self._index(scope, collection) if self._hot else None
        found = None if index is None else await index.nearest(collection, vectors, limit, where)
        if found is None:
            return await self._vectors.search(scope, collection, vectors, limit, where, consistency)
        return found

    def _index(self, scope: Scope, collection: Collection) -> "FactsIndex | TextsIndex | None":
        if collection in (Collection.STATEMENTS, Collection.ENTITIES):
            return self._facts.held(scope)
        return self._texts.held(scope) if collection in (Collection.PASSAGES, Collection.VOICE) else None
