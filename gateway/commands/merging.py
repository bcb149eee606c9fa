"""MergeEntities and SplitEntity: which entities read as one, because a user says so.

What is kept for a repeated call are ids and the revision, no text: the answer is read anew, as of then.
"""

import asyncio
from collections.abc import Awaitable, Callable

from gateway.convert.entities import card_out
from gateway.ingest.background import Background
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.requests import RequestName, Requests, fingerprint
from palimpsest.internal.v1 import recall_lists_pb2, resolver_entities_pb2, values_pb2
from palimpsest.v1 import entity_pb2, memory_entities_pb2
from services.domain.instants import Instant
from services.domain.scope import Scope

MERGE, SPLIT = "MemoryService.MergeEntities", "MemoryService.SplitEntity"


class Merging:
    """Both are idempotent by request_id, and cost nothing."""

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        requests: Requests,
        background: Background,
        seconds: float,
        now: Callable[[], Instant],
    ) -> None:
        """`seconds` is how long each call to a service may take."""
        self._services = services
        self._graphs = graphs
        self._requests = requests
        self._background = background
        self._seconds = seconds
        self._now = now

    async def merge(
        self, scope: Scope, request: memory_entities_pb2.MergeEntitiesRequest, actor: str
    ) -> memory_entities_pb2.MergeEntitiesResponse:
        """Raises GraphNotFound, EntityNotFound, RequestIdReused, ValidationFailed (types can't be one)."""
        asked = resolver_entities_pb2.MergeRequest(
            commit_id=request.request_id,
            into_id=request.into_entity_id,
            entity_ids=request.entity_ids,
            actor=actor,
            why=request.reason,
        )

        async def work() -> bytes:
            done = await self._services.call(scope, self._services.resolver.Merge, asked, self._seconds)
            return done.SerializeToString()

        name = RequestName(scope.tenant, MERGE, request.request_id, fingerprint(request), scope.graph)
        answer = await self._once(scope, name, work)
        merged = resolver_entities_pb2.MergeResponse.FromString(answer)
        return memory_entities_pb2.MergeEntitiesResponse(
            entity=await self._entity(scope, merged.entity_id, merged.revision), revision=merged.revision
        )

    async def split(
        self, scope: Scope, request: memory_entities_pb2.SplitEntityRequest, actor: str
    ) -> memory_entities_pb2.SplitEntityResponse:
        """Raises GraphNotFound, EntityNotFound, NotMerged, RequestIdReused."""
        asked = resolver_entities_pb2.SplitRequest(
            commit_id=request.request_id, entity_id=request.entity_id, actor=actor, why=request.reason
        )

        async def work() -> bytes:
            done = await self._services.call(scope, self._services.resolver.Split, asked, self._seconds)
            return done.SerializeToString()

        name = RequestName(scope.tenant, SPLIT, request.request_id, fingerprint(request), scope.graph)
        split = resolver_entities_pb2.SplitResponse.FromString(await self._once(scope, name, work))
        return memory_entities_pb2.SplitEntityResponse(
            entity=await self._entity(scope, request.entity_id, split.revision),
            former_entity=await self._entity(scope, split.former_id, split.revision),
            revision=split.revision,
        )

    async def _once(self, scope: Scope, name: RequestName, work: Callable[[], Awaitable[bytes]]) -> bytes:
        await self._graphs.check(scope, writing=True)
        # The caller may leave; what was begun is carried out all the same.
        answer, _ = await asyncio.shield(self._background.start(self._requests.once(name, work)))
        return answer

    async def _entity(self, scope: Scope, id: str, revision: int) -> entity_pb2.Entity:
        asked = recall_lists_pb2.ReadEntityRequest(
            entity=id, known_at=values_pb2.KnownAt(revision=revision), now=self._now()
        )
        read = await self._services.call(scope, self._services.recall.ReadEntity, asked, self._seconds)
        return card_out(read.entity)
