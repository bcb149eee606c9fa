"""The port of readings, a part of the memory port: merges of entities, declarations of predicates."""

from collections.abc import Sequence
from typing import Protocol

from services.domain.identity import Merge
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision
from services.domain.predicates import Declared
from services.domain.scope import Scope
from services.stores.paging import Listed, Page


class ReadingStore(Protocol):
    """How ids and names read: merges of entities and declarations of predicates, each with its revisions.

    Written with a revision by the resolver, like voice aspects; small beside the graph, and asked whole.
    """

    async def apply(
        self,
        scope: Scope,
        revision: Revision,
        merges: Sequence[Merge],
        declared: Sequence[Declared],
        revoked: Sequence[RecordId],
    ) -> None:
        """Adds records and revokes others from `revision` on. Idempotent: what is there stays as it is."""
        ...

    async def merges(self, scope: Scope, entities: Sequence[EntityId]) -> Sequence[Merge]:
        """Every merge that names one of these entities on either side, revoked ones included; oldest first.

        One indexed look-up. Merges of merges are asked for in turn: see services/stores/memory/groups.py.
        """
        ...

    async def of_episode(self, scope: Scope, episode: EpisodeId) -> Sequence[Merge]:
        """Every merge that this episode's text made somebody ask, revoked ones included; oldest first."""
        ...

    async def list_merges(self, scope: Scope, page: Page) -> Listed[Merge]:
        """Every merge of a graph, revoked ones included, oldest first; for recall's memory and for export."""
        ...

    async def predicate_merges(self, scope: Scope) -> Sequence[Merge]:
        """Every SYNONYM and DISTINCT of a graph, revoked ones included, oldest first. One indexed look-up."""
        ...

    async def declared(self, scope: Scope) -> Sequence[Declared]:
        """Every declaration of a graph, revoked ones included, oldest first."""
        ...

    async def forget_text(self, scope: Scope, merges: Sequence[RecordId]) -> None:
        """Empties the reasons of merges. Idempotent."""
        ...
