"""NebulaGraphStore: the graph port over one space of a NebulaGraph cluster."""

from collections.abc import Mapping, Sequence
from typing import Self

from services.domain.graph import Entity
from services.domain.ids import EntityId, EpisodeId, Revision, StatementId
from services.domain.instants import Interval
from services.domain.scope import Scope
from services.stores.errors import UnstorableText
from services.stores.graph.nebula import bootstrap, forgetting, lists, names, reads, tallies, walks, writes
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.vids import Kind
from services.stores.graph.port import (
    NOBODY,
    Alias,
    AsOf,
    Commit,
    Counts,
    EntityFilter,
    Forgetting,
    NodePair,
    Records,
    StatementFilter,
    StatementView,
    Step,
    Together,
)
from services.stores.paging import Listed, Page
from services.stores.storable import is_storable


class NebulaGraphStore:
    """GraphStore on NebulaGraph. Owns its sessions. A call is several sentences and no transaction.

    Ids are of the alphabet in vids.py, else ValueError on writes; reads find nothing under others.
    """

    def __init__(self, settings: NebulaSettings, sessions: Sessions | None = None) -> None:
        self._sessions = sessions or Sessions(settings)

    @classmethod
    async def open(cls, settings: NebulaSettings) -> Self:
        """A store whose space is of this version. Raises SchemaUnusable, StoreUnavailable."""
        await bootstrap.check(settings)
        return cls(settings)

    async def apply(self, scope: Scope, commit: Commit) -> None:
        await writes.write(self._sessions, writes.batch(scope, commit))

    async def find_entities(
        self, scope: Scope, keys: Sequence[str], known_at: Revision
    ) -> Mapping[str, Sequence[Entity]]:
        return await reads.find_entities(self._sessions, scope, keys, known_at)

    async def entities(self, scope: Scope, ids: Sequence[EntityId]) -> Sequence[Entity]:
        found = await reads.entities(self._sessions, scope, ids)
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    async def aliases(self, scope: Scope, known_at: Revision) -> Sequence[Alias]:
        return await reads.aliases(self._sessions, scope, known_at)

    async def aliases_of(self, scope: Scope, ids: Sequence[EntityId], known_at: Revision) -> Sequence[Alias]:
        return await names.aliases_of(self._sessions, scope, ids, known_at)

    async def list_entities(
        self, scope: Scope, where: EntityFilter, known_at: Revision, page: Page
    ) -> Listed[Entity]:
        return await names.list_entities(self._sessions, scope, where, known_at, page)

    async def degrees(self, scope: Scope, groups: Sequence[Sequence[EntityId]], at: AsOf) -> Sequence[int]:
        return await tallies.degrees(self._sessions, scope, groups, at)

    async def views(self, scope: Scope, ids: Sequence[StatementId], at: AsOf) -> Sequence[StatementView]:
        return await reads.views(self._sessions, scope, ids, at)

    async def records(self, scope: Scope, ids: Sequence[StatementId]) -> Records:
        return await reads.records(self._sessions, scope, ids)

    async def slot(self, scope: Scope, subject: EntityId, predicate: EntityId) -> Sequence[StatementId]:
        pair = (subject, predicate)
        return (await self.slots(scope, [pair])).get(pair, [])

    async def slots(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        return await reads.statements_of_pairs(self._sessions, scope, Kind.SLOT, pairs)

    async def between(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        return await reads.statements_of_pairs(self._sessions, scope, Kind.BETWEEN, pairs)

    async def of_predicate(
        self, scope: Scope, predicate: EntityId, target: EntityId | None, page: Page
    ) -> Listed[StatementId]:
        return await lists.of_predicate(self._sessions, scope, predicate, target, page)

    async def naming(self, scope: Scope, entities: Sequence[EntityId], page: Page) -> Listed[StatementId]:
        return await lists.naming(self._sessions, scope, entities, page)

    async def of_episode(self, scope: Scope, episode: EpisodeId) -> Records:
        return await reads.of_episode(self._sessions, scope, episode)

    async def list_statements(
        self, scope: Scope, where: StatementFilter, at: AsOf, page: Page
    ) -> Listed[StatementView]:
        return await lists.list_statements(self._sessions, scope, where, at, page)

    async def walk(
        self,
        scope: Scope,
        seeds: Sequence[EntityId],
        at: AsOf,
        max_hops: int,
        per_level: int,
        together: Together = NOBODY,
    ) -> Sequence[Step]:
        return await walks.walk(self._sessions, scope, seeds, at, max_hops, per_level, together)

    async def scan(self, scope: Scope, page: Page) -> Listed[StatementId]:
        return await lists.scan(self._sessions, scope, page)

    async def counts(self, scope: Scope, known_at: Revision) -> Counts:
        return await tallies.counts(self._sessions, scope, known_at)

    async def orphans(self, scope: Scope, ids: Sequence[EntityId], known_at: Revision) -> Sequence[EntityId]:
        return await tallies.orphans(self._sessions, scope, ids, known_at)

    async def hulls(self, scope: Scope, ids: Sequence[StatementId]) -> Mapping[StatementId, Interval]:
        """See KeepsHulls in the port."""
        return await reads.hulls(self._sessions, scope, ids)

    async def forget(self, scope: Scope, forgotten: Forgetting) -> None:
        if not all(is_storable(sentence) for _, sentence in forgotten.retold):
            raise UnstorableText("fact holds NUL or a lone surrogate")
        await forgetting.forget(self._sessions, scope, forgotten)

    async def purge(
        self, scope: Scope, statements: Sequence[StatementId], entities: Sequence[EntityId]
    ) -> None:
        await forgetting.purge(self._sessions, scope, statements, entities)

    async def rows(self, scope: Scope) -> Mapping[str, int]:
        """See the port. Counted by the shelves, by which everything is found."""
        return await forgetting.rows(self._sessions, scope)

    async def erase(self, scope: Scope) -> None:
        await forgetting.erase(self._sessions, scope)

    async def close(self) -> None:
        await self._sessions.close()
