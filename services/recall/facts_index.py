"""FactsIndex: one graph's statements and names in memory, searched by words and vectors; followed."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import numpy.typing as npt

from services.domain.graph import EntityType
from services.domain.ids import EntityId, Revision, StatementId
from services.domain.instants import Instant
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.recall.behind import Behind
from services.recall.bm25 import Bm25
from services.recall.cues import PredicateWords
from services.recall.hot.changes import Changes, changes_since
from services.recall.hot.graph import HotGraph, OutOfOrder
from services.recall.hot.vectors import HotVectors
from services.recall.mentions import AliasTable
from services.recall.revisions import Known
from services.recall.statement_terms import cut_statements
from services.recall.states import State, nested, within
from services.recall.terms import terms
from services.stores.graph.plain import (
    PlainRecords,
    alias_of,
    plain,
    plain_alias,
    plain_statement,
    scan_plain,
)
from services.stores.graph.port import Alias, AsOf, GraphStore
from services.stores.memory.archive import ArchiveStore
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import RevisionLog
from services.stores.paging import Page
from services.stores.vectors.port import Collection, Hit, Vector, VectorFilter, VectorStore

PAGE = 1_000
"""Statements read at a time."""
_CREATED_AT = 9
"""Where a plain statement tells its revision."""
_ALIAS_BYTES = 400
_NEWEST = Revision(2**62)
"""Beyond all that a graph has."""
PAST_TABLES = 4
"""Alias tables of earlier revisions that are kept: whoever asks as known then asks again."""


class FactsIndex:
    """What is known of a graph's facts, loaded or restored, then brought forward by the log of revisions.

    Everything recorded is there, past beliefs too: what a reader may see is told by masks, as asked. Words
    and vectors propose; what is forgotten at a revision is gone once that is reached. Between two awaits it
    is all of one moment, and may be ahead of its revision.
    """

    def __init__(
        self,
        graph: GraphStore,
        lexicons: Lexicons,
        log: RevisionLog,
        vectors: VectorStore,
        scope: Scope,
        max_bytes: int,
        behind: Behind,
        archive: ArchiveStore | None = None,
    ) -> None:
        """`max_bytes`: vectors are held while they fit in that beside all else; `behind` the answers where
        they are many.

        With an `archive` nothing that lies there is searched for, though it is read; without, all is
        searched, by words alone: whoever asks for the whole has the vectors of the other index.
        """
        self._behind = behind
        self._archive = archive
        self._archived: set[StatementId] = set()
        self.moved_at = Revision(0)
        """The latest revision that archived anything or brought it back, as the archive knew; 0: none did."""
        self._graph = graph
        self._lexicons = lexicons
        self._log = log
        self._vectors = vectors
        self._scope = scope
        self._max_bytes = max_bytes
        self._aliases: dict[EntityId, list[Alias]] = {}
        self._past: dict[Revision, AliasTable] = {}
        self.revision = Revision(0)
        self._hold(HotGraph())
        self.clocks: dict[Revision, Instant] = {}
        self.statements = Bm25()
        self.entities = Bm25()
        self.aliases = AliasTable(())
        self.predicates = PredicateWords((), Vocabulary())

    def _hold(self, hot: HotGraph) -> None:
        self.hot = hot
        of = (self._vectors, self._behind, self._scope)
        self._near_statements = HotVectors(*of, Collection.STATEMENTS, hot.text_digest)
        self._near_entities = HotVectors(*of, Collection.ENTITIES, hot.nodes.text_digest)

    @property
    def rows(self) -> int:
        return len(self.hot)

    @property
    def bytes(self) -> int:
        return self._compact_bytes + self._near_statements.bytes + self._near_entities.bytes

    @property
    def _compact_bytes(self) -> int:
        names = len(self.aliases) + sum(len(table) for table in self._past.values())
        words = self.statements.bytes + self.entities.bytes + names * _ALIAS_BYTES
        return words + self.hot.bytes

    async def load(self, known: Known) -> None:
        """From the stores, but no vectors. Raises StoreUnavailable, and is then to be thrown away."""
        # Before statements are read: what moves meanwhile is seen next time.
        self.moved_at = await self._archive.latest(self._scope) if self._archive else Revision(0)
        revision, after = known.current, ""
        while True:
            page = await scan_plain(self._graph, self._scope, Page(PAGE, after))
            await self._put(page.records, revision)
            if not page.after:
                break
            after = page.after
        await asyncio.to_thread(self.statements.sort_in)
        self._aliases = _by_entity(await self._graph.aliases(self._scope, revision))
        await self._name(revision, self._aliases)

    async def restore(self, state: State) -> None:
        """From the state of another one. Raises StoreUnavailable, and is then to be thrown away."""
        hot, self.statements, self.entities = await asyncio.to_thread(
            lambda: (
                HotGraph(within("hot", state)),
                Bm25(within("statements", state)),
                Bm25(within("entities", state)),
            )
        )
        self._hold(hot)
        self._archived = {*state["archived"]}
        self._aliases = _by_entity(map(alias_of, state["aliases"]))
        self.aliases = self._table()
        revision, self.moved_at = state["seen"]
        await self._name(revision, ())

    @property
    def state(self) -> State:
        """All that it holds, vectors left out, as it is now."""
        return {
            "seen": [self.revision, self.moved_at],
            "archived": [*self._archived],
            "aliases": [plain_alias(alias) for own in self._aliases.values() for alias in own],
            **nested("hot", self.hot.state),
            **nested("statements", self.statements.state),
            **nested("entities", self.entities.state),
        }

    async def take_over(self, before: Self) -> None:
        """The vectors that another index of these facts has of the same texts; before any are read."""
        if self._has_room:
            nodes, there = self.hot.nodes.ids, before.hot.nodes.ids
            await self._near_statements.take_over(self.hot.ids, before._near_statements, before.hot.ids)
            await self._near_entities.take_over(nodes, before._near_entities, there)

    async def settled(self) -> None:
        """Waits for vectors that are being loaded."""
        await self._near_statements.loaded()
        await self._near_entities.loaded()

    async def bring_forward(self, known: Known) -> bool:
        """Reads what is published and not here. False when all is to be loaded anew.

        Raises StoreUnavailable, and can then be repeated.
        """
        if known.current > self.revision and not await self._advance(known.current):
            return False
        await self._follow_vectors()
        return True

    async def _advance(self, revision: Revision) -> bool:
        changes = await changes_since(self._log, self._scope, self.revision, revision)
        if changes is None or (self._archive and await self._archive.latest(self._scope) != self.moved_at):
            return False
        try:
            await self._change(changes, revision)
        except OutOfOrder:
            return False
        return True

    async def _change(self, changes: Changes, revision: Revision) -> None:
        there = [id for id in sorted(changes.entities) if not self.hot.nodes.lacks([id])]
        renamed = self.hot.put_entities(await self._graph.entities(self._scope, there)) if there else []
        for place in renamed:
            self._near_entities.drop(place)
        retold = await self._take(sorted(changes.statements), revision)
        if retold or renamed:
            await self._cut_again()
        if changes.entities:
            ids = sorted(changes.entities)
            fresh: dict[EntityId, list[Alias]] = {id: [] for id in ids}
            for alias in await self._graph.aliases_of(self._scope, ids, revision):
                fresh[alias.entity].append(alias)
            self._aliases |= fresh
            await self._name(revision, fresh)
        else:
            await self._name(revision, ())

    async def _take(self, ids: Sequence[StatementId], revision: Revision) -> bool:
        """Puts statements of up to a revision; answers whether words of what was there are others now."""
        retold = False
        for start in range(0, len(ids), PAGE):
            read = await self._graph.records(self._scope, ids[start : start + PAGE])
            retold = await self._put(plain(read), revision) or retold
        return retold

    async def _put(self, read: PlainRecords, revision: Revision) -> bool:
        """The same of some that are read."""
        # What a later revision creates comes with that one.
        read = replace(read, statements=[one for one in read.statements if one[_CREATED_AT] <= revision])
        nodes = [node for one in read.statements for node in one[1:4] if node is not None]
        lacking = self.hot.nodes.lacks(nodes)
        if lacking:
            self.hot.put_entities(await self._graph.entities(self._scope, lacking))
            # What lost a node since it was read goes as well, or is told of by upkeep.
            gone = {*self.hot.nodes.lacks(lacking)}
            read = replace(read, statements=[one for one in read.statements if not gone & {*one[1:4]}])
        fresh = [one for one in read.statements if self.hot.place(one[0]) is None]
        if self._archive and self.moved_at:
            self._archived |= await self._archive.among(self._scope, [one[0] for one in fresh])
            fresh = [one for one in fresh if one[0] not in self._archived]
        retold = self.hot.put(read)
        for place in retold:
            self._near_statements.drop(place)
        # Cutting words is the work; the event loop stays free meanwhile.
        self.statements.add_all(await asyncio.to_thread(cut_statements, fresh, self.hot.nodes))
        return bool(retold)

    async def _cut_again(self) -> None:
        """Words anew, so that none of what was forgotten or is told otherwise stays."""
        searched = [id for id in self.hot.ids if id not in self._archived]
        views = self.hot.views(searched, AsOf(_NEWEST))
        cut = await asyncio.to_thread(
            cut_statements, [plain_statement(view.statement) for view in views], self.hot.nodes
        )
        self.statements = Bm25()
        self.statements.add_all(cut)

    async def _name(self, revision: Revision, changed: Iterable[EntityId]) -> None:
        """The tables of names, where something of them changed; and the revision that is reached now."""
        changed = list(changed)
        if changed:
            self.aliases = self._table()
            await self._name_entities(changed)
        lexicon = await self._lexicons.at(self._scope, revision)
        self.predicates = PredicateWords(self.aliases.predicates, lexicon.known)
        self._past.clear()
        self.revision = revision

    async def _name_entities(self, changed: Sequence[EntityId]) -> None:
        names = _names(self.aliases)
        if any(id in self.entities for id in changed):
            self.entities, changed = Bm25(), list(names)
        fresh = [id for id in changed if id in names]
        cut = await asyncio.to_thread(
            lambda: [[term for name in names[id] for term in terms(name)] for id in fresh]
        )
        self.entities.add_all(zip(fresh, cut, strict=True))

    def _table(self, until: Revision = _NEWEST) -> AliasTable:
        every = [one for own in self._aliases.values() for one in own if one.recorded_at <= until]
        return AliasTable(sorted(every, key=lambda one: (one.key, one.type, one.entity)))

    async def aliases_at(self, revision: Revision) -> AliasTable:
        """The names as known at a revision that was reached."""
        if revision == self.revision:
            return self.aliases
        if revision not in self._past:
            if len(self._past) >= PAST_TABLES:
                self._past.pop(next(iter(self._past)))
            self._past[revision] = self._table(revision)
        return self._past[revision]

    # Vectors

    async def nearest(
        self, collection: Collection, vectors: Sequence[Vector], limit: int, where: VectorFilter
    ) -> list[list[Hit]] | None:
        """The nearest of its statements or entities to each vector; None while it lacks any of theirs."""
        near = self._near_statements if collection is Collection.STATEMENTS else self._near_entities
        if not near.whole:
            return None
        ids: Sequence[str] = self.hot.nodes.ids
        mask = self.hot.nodes.named()
        if collection is Collection.STATEMENTS:
            ids, mask = self.hot.ids, self.hot.searched(where) & self._hot_places()
        return await near.search(ids, vectors, limit, mask)

    def _hot_places(self) -> npt.NDArray[np.bool_]:
        """False where what stands there is archived."""
        mask = np.ones(len(self.hot), dtype=np.bool_)
        mask[[place for id in self._archived if (place := self.hot.place(id)) is not None]] = False
        return mask

    @property
    def _has_room(self) -> bool:
        """Whether vectors fit beside all else."""
        rows = len(self.hot) + len(self.hot.nodes)
        return self._compact_bytes + rows * self._vectors.dimension * 4 <= self._max_bytes

    async def _follow_vectors(self) -> None:
        if self._archive is None or not self._has_room:
            return
        await self._near_statements.follow(self.hot.ids, self.hot.worded & self._hot_places())
        await self._near_entities.follow(self.hot.nodes.ids, self.hot.nodes.named())


def _names(aliases: AliasTable) -> dict[EntityId, list[str]]:
    names: dict[EntityId, list[str]] = {}
    for named in aliases.nodes:
        if named.type is not EntityType.PREDICATE:
            names.setdefault(named.id, []).append(named.name)
    return names


def _by_entity(aliases: Iterable[Alias]) -> dict[EntityId, list[Alias]]:
    found: dict[EntityId, list[Alias]] = {}
    for alias in aliases:
        found.setdefault(alias.entity, []).append(alias)
    return found
