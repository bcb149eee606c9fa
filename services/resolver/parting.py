"""Parting: what becomes of merges, of predicates too, when an episode is deleted."""

from collections.abc import Iterable, Sequence

from services.domain.graph import Literal, Statement
from services.domain.identity import MergeKind
from services.domain.ids import EntityId, EpisodeId, Revision, StatementId
from services.domain.lexicon import predicate_id
from services.domain.records import Claim, Denial, End, Judge
from services.domain.scope import Scope
from services.resolver.change import Draft
from services.stores.graph.port import GraphStore, Records
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import ReadingStore
from services.stores.paging import Page

_PAGE = 200
"""Statements naming an entity that are looked through at once for one that still holds."""


class Parting:
    """Adds to a draft that revokes what episodes said."""

    def __init__(self, graph: GraphStore, readings: ReadingStore, lexicons: Lexicons) -> None:
        self._graph = graph
        self._readings = readings
        self._lexicons = lexicons

    async def add(self, scope: Scope, draft: Draft, episodes: Sequence[EpisodeId]) -> None:
        """Revokes merges of entities that lose all support, and empties reasons that the episodes gave."""
        for episode in episodes:
            asked = await self._readings.of_episode(scope, episode)
            draft.merges_emptied |= {merge.id for merge in asked if merge.why}
        await self.part(scope, draft)

    async def part(self, scope: Scope, draft: Draft) -> None:
        """Revokes merges of entities that lose all support.

        A merge is on two entities, whoever made it be asked: as a verdict, it goes when one of them loses all
        support, unless a user gave it. A predicate that ships or is declared needs no support.
        """
        named = _losing(draft)
        merges = [
            merge
            for merge in (await self._readings.merges(scope, sorted(named)) if named else ())
            if merge.revoked_at is None and merge.judge is not Judge.USER
        ]
        sides = {side for merge in merges for side in (merge.entity, merge.into)} & named
        gone = {side for side in sides if not await self._supported(scope, draft, side)}
        if any(merge.kind in (MergeKind.SYNONYM, MergeKind.DISTINCT) for merge in merges):
            lexicon = await self._lexicons.at(scope, Revision(draft.revision - 1))
            gone -= {predicate_id(scope, name) for name in lexicon.words}
        for merge in merges:
            if {merge.entity, merge.into} & gone:
                draft.part(merge)

    async def losing(self, scope: Scope, draft: Draft) -> set[EntityId]:
        """Entities that nothing names any more, of which any record counts, once the draft is published."""
        return {one for one in _losing(draft) if not await self._supported(scope, draft, one)}

    async def _supported(self, scope: Scope, draft: Draft, entity: EntityId) -> bool:
        page = Page(_PAGE)
        while True:
            listed = await self._graph.naming(scope, [entity], page)
            records = await self._graph.records(scope, listed.items)
            if _supporting(records, draft) & set(listed.items):
                return True
            if not listed.after:
                return False
            page = Page(_PAGE, listed.after)


def _losing(draft: Draft) -> set[EntityId]:
    """The entities of statements that the draft leaves without a record, unless it names them first."""
    supported = _supporting(draft.stored, draft)
    gone = _named_in(one for one in draft.stored.statements if one.id not in supported)
    return gone - _named_in(draft.statements.values())


def _named_in(statements: Iterable[Statement]) -> set[EntityId]:
    nodes = {node for one in statements for node in (one.subject, one.predicate, one.object)}
    return {EntityId(node) for node in nodes if not isinstance(node, Literal)}


def _supporting(records: Records, draft: Draft) -> set[StatementId]:
    """The statements with a record that counts still, or from the draft on."""
    every: list[Claim | End | Denial] = [*records.claims, *records.ends, *records.denials]
    counting = {one.statement for one in every if one.revoked_at is None and one.id not in draft.revocations}
    anew: list[Claim | End | Denial] = [*draft.claims.values(), *draft.ends.values(), *draft.denials.values()]
    return counting | {one.statement for one in anew}
