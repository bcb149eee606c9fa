"""Readings: how entities read before a draft and with it, learned as those are met who need it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from services.domain.beliefs import in_force
from services.domain.identity import Merge, merged
from services.domain.ids import EntityId, RecordId, Revision
from services.domain.scope import Scope
from services.domain.slots import Reading
from services.resolver.change import Draft
from services.stores.memory.groups import connected
from services.stores.paging import Listed, Page

FEW = 200
"""Merges of a graph that are read at once, without asking who is concerned."""


class Merges(Protocol):
    """A ReadingStore, as far as it is read here."""

    async def list_merges(self, scope: Scope, page: Page) -> Listed[Merge]: ...
    async def merges(self, scope: Scope, entities: Sequence[EntityId]) -> Sequence[Merge]: ...


class Readings:
    """Of one draft. `before` is as known at the revision before it; `after` has its merges and revocations.

    Ask of entities that were learned; of others it may know too little.
    """

    def __init__(self, store: Merges, scope: Scope, draft: Draft, few: int = FEW) -> None:
        self._store = store
        self._scope = scope
        self._draft = draft
        self._few = few
        self._merges: dict[RecordId, Merge] = {}
        self._learned: set[EntityId] = set()
        self._whole: bool | None = None
        self._groups: dict[EntityId, frozenset[EntityId]] = {}
        self.before: Mapping[EntityId, EntityId] = {}
        self.after: Mapping[EntityId, EntityId] = {}

    async def learn(self, entities: Iterable[EntityId]) -> None:
        """Looks up what bears on how these read. Raises StoreUnavailable."""
        unknown = set(entities) - self._learned
        if self._whole or not unknown:
            return
        drafted = list(self._draft.merges.values())
        if self._whole is None:
            listed = await self._store.list_merges(self._scope, Page(self._few))
            self._whole = not listed.after
        if self._whole:
            stored = {merge.id: merge for merge in listed.items}
            found = [*stored.values(), *(merge for merge in drafted if merge.id not in stored)]
        else:
            found = await connected(self._store, self._scope, unknown, drafted)
        self._learned |= unknown | {side for merge in found for side in (merge.entity, merge.into)}
        self._merges |= {merge.id: merge for merge in found}
        self._read()

    def reading(self, keys: Mapping[EntityId, str]) -> Reading:
        """How what was learned reads with the draft: what spans are derived by."""
        return Reading(self.after, keys)

    def alike(self, entity: EntityId) -> frozenset[EntityId]:
        """Those that read as one with an entity, before the draft or with it; the entity itself included."""
        return self._groups.get(entity) or frozenset((entity,))

    async def changed(self) -> set[EntityId]:
        """Entities that read otherwise with the draft than before it."""
        sides = {side for merge in self._draft.merges.values() for side in (merge.entity, merge.into)}
        await self.learn(sides | self._draft.parted)
        met = self.before.keys() | self.after.keys()
        return {entity for entity in met if self.before.get(entity) != self.after.get(entity)}

    def _read(self) -> None:
        known = Revision(self._draft.revision - 1)
        # A merge that is stored already, by an earlier revision or by a rival of this one, is no draft's.
        stored = [merge for merge in self._merges.values() if self._draft.merges.get(merge.id) is not merge]
        drafted = [merge for merge in self._merges.values() if self._draft.merges.get(merge.id) is merge]
        counting = in_force(stored, known)
        self.before = merged(counting)
        revoked = self._draft.readings_revoked
        self.after = merged([*(merge for merge in counting if merge.id not in revoked), *drafted])
        groups: dict[EntityId, set[EntityId]] = {}
        for reads in (self.before, self.after):
            together: dict[EntityId, set[EntityId]] = {}
            for entity, into in reads.items():
                together.setdefault(into, {into}).add(entity)
            for members in together.values():
                for entity in members:
                    groups.setdefault(entity, set()).update(members)
        self._groups = {entity: frozenset(members) for entity, members in groups.items()}
