"""Groups: the merges that bear on how given entities read, asked for until no more are connected."""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from services.domain.identity import Merge, MergeKind
from services.domain.ids import EntityId, RecordId
from services.domain.scope import Scope
from services.stores.memory.port import ReadingStore
from services.stores.paging import Page


class Asked(Protocol):
    """A ReadingStore, as far as it is asked here."""

    async def merges(self, scope: Scope, entities: Sequence[EntityId]) -> Sequence[Merge]: ...


async def connected(
    readings: Asked, scope: Scope, entities: Iterable[EntityId], drafted: Collection[Merge] = ()
) -> list[Merge]:
    """Every merge within the groups of these entities, revoked ones included; oldest first.

    Those of `drafted` count like stored ones; what is stored under the same id stands. A group is what SAME
    records connect, in whatever revision they count: at any revision, `merged` (services/domain/identity.py)
    of those in force says how each entity of these groups reads. Whom an APART record alone names is no
    member, and such a record is left out: it bears on nothing here. One look-up for each step away, so two
    for most entities and one for those that nobody ever merged.
    Raises StoreUnavailable.
    """
    found: dict[RecordId, Merge] = {}
    members: set[EntityId] = set()
    wanted = set(entities)
    while wanted:
        members |= wanted
        met = {merge.id: merge for merge in drafted if {merge.entity, merge.into} & wanted}
        met |= {merge.id: merge for merge in await readings.merges(scope, sorted(wanted))}
        found |= met
        same = [merge for merge in met.values() if merge.kind is MergeKind.SAME]
        wanted = {side for merge in same for side in (merge.entity, merge.into)} - members
    return sorted(
        (merge for merge in found.values() if merge.entity in members and merge.into in members),
        key=lambda merge: (merge.recorded_at, merge.id),
    )


async def all_merges(readings: ReadingStore, scope: Scope, page_size: int = 1000) -> list[Merge]:
    """Every merge of a graph, revoked ones included, oldest first. Raises StoreUnavailable."""
    found: list[Merge] = []
    page = Page(page_size)
    while True:
        listed = await readings.list_merges(scope, page)
        found += listed.items
        if not listed.after:
            return found
        page = Page(page_size, listed.after)
