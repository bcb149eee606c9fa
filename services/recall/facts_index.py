"""FactsIndex: one graph's statements and names, searchable by words; read from the graph store."""

import asyncio
from collections.abc import Sequence

from services.domain.graph import EntityType, Literal
from services.domain.ids import Revision, StatementId
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.recall.bm25 import Bm25
from services.recall.cues import PredicateWords
from services.recall.mentions import AliasTable
from services.recall.terms import terms
from services.stores.graph.port import AsOf, GraphStore, StatementView
from services.stores.memory.archive import ArchiveStore
from services.stores.memory.lexicons import Lexicons
from services.stores.paging import Page

PAGE = 1_000
"""Statements read at a time."""
_ALIAS_BYTES = 400
PAST_TABLES = 4
"""Alias tables of earlier revisions that are kept: whoever asks as known then asks again."""


class FactsIndex:
    """Lexical postings of statements and entities, and the alias table, as of one published revision.

    What it holds may be more than a reader may see: every hit is read again from the store, as asked.
    Statements are read in order of creation, so a later revision costs what it adds. Built anew when claims
    have been revoked, so that no words of a deleted episode stay, and when statements went to the archive or
    came back. With an `archive` it has no statements that lie there; without, it has them all.
    """

    def __init__(
        self, graph: GraphStore, lexicons: Lexicons, scope: Scope, archive: ArchiveStore | None = None
    ) -> None:
        self._archive = archive
        self.moved_at = Revision(0)
        """The latest revision that archived anything or brought it back, as the archive knew; 0: none did."""
        self._graph = graph
        self._lexicons = lexicons
        self._scope = scope
        self._revision: Revision | None = None
        self._claims = 0
        self._after = ""
        self._unread: set[StatementId] = set()
        self._past: dict[Revision, AliasTable] = {}
        self.statements = Bm25()
        self.entities = Bm25()
        self.aliases = AliasTable(())
        self.predicates = PredicateWords((), Vocabulary())

    @property
    def bytes(self) -> int:
        names = len(self.aliases) + sum(len(table) for table in self._past.values())
        return self.statements.bytes + self.entities.bytes + names * _ALIAS_BYTES

    async def bring_forward(self, revision: Revision) -> None:
        """Reads what `revision` has and this has not. Raises StoreUnavailable, and can then be repeated."""
        if self._revision is not None and revision <= self._revision:
            return
        claims = (await self._graph.counts(self._scope, revision)).claims
        # Before statements are read: what moves meanwhile is seen next time.
        moved_at = await self._archive.latest(self._scope) if self._archive else Revision(0)
        moved = self._revision is not None and moved_at != self.moved_at
        if claims < self._claims or moved:
            anew = FactsIndex(self._graph, self._lexicons, self._scope, self._archive)
            await anew.bring_forward(revision)
            # In one go: who reads meanwhile sees all of the old or all of the new.
            vars(self).update(vars(anew))
            return
        self.moved_at = moved_at
        await self._read_statements(revision)
        aliases = AliasTable(await self._graph.aliases(self._scope, revision))
        entities = Bm25()
        for id, names in _names(aliases).items():
            entities.add(id, [term for name in names for term in terms(name)])
        lexicon = await self._lexicons.at(self._scope, revision)
        self.aliases, self.entities = aliases, entities
        self.predicates = PredicateWords(aliases.predicates, lexicon.known)
        self._revision, self._claims = revision, claims

    async def aliases_at(self, revision: Revision) -> AliasTable:
        """The names as known at a revision. Raises StoreUnavailable."""
        if revision == self._revision:
            return self.aliases
        if revision not in self._past:
            if len(self._past) >= PAST_TABLES:
                self._past.pop(next(iter(self._past)))
            self._past[revision] = AliasTable(await self._graph.aliases(self._scope, revision))
        return self._past[revision]

    async def _read_statements(self, revision: Revision) -> None:
        # Ids that were met without a readable text (not published yet, or forgotten) are asked for again.
        await self._add(sorted(self._unread), revision)
        after = self._after
        while True:
            listed = await self._graph.scan(self._scope, Page(PAGE, after))
            fresh = [id for id in listed.items if id not in self.statements and id not in self._unread]
            if self._archive and self.moved_at:
                archived = await self._archive.among(self._scope, fresh)
                fresh = [id for id in fresh if id not in archived]
            await self._add(fresh, revision)
            # The last page is read again next time: what comes later is put at its end.
            self._after = after
            if not listed.after:
                return
            after = listed.after

    async def _add(self, ids: Sequence[StatementId], revision: Revision) -> None:
        if not ids:
            return
        views = await self._graph.views(self._scope, ids, AsOf(revision))
        readable = [view for view in views if view.statement.fact]
        # Cutting words is the work; the event loop stays free meanwhile.
        cut = await asyncio.to_thread(lambda: [statement_terms(view) for view in readable])
        for view, found in zip(readable, cut, strict=True):
            self.statements.add(view.statement.id, found)
        self._unread = (self._unread | set(ids)) - {view.statement.id for view in readable}


def statement_terms(view: StatementView) -> list[str]:
    """The words of the sentence, and those of the triple that it lacks."""
    target = view.statement.object
    named = target.text if isinstance(target, Literal) else view.object.name if view.object else ""
    found = terms(view.statement.fact)
    have = set(found)
    triple = terms(f"{view.subject.name} {view.predicate.name.replace('_', ' ')} {named}")
    return found + [term for term in triple if term not in have]


def _names(aliases: AliasTable) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for named in aliases.nodes:
        if named.type is not EntityType.PREDICATE:
            names.setdefault(named.id, []).append(named.name)
    return names
