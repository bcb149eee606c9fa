"""RestoreArchived: what retention took out of the way comes back as it was."""

import asyncio

from gateway.ingest.background import Background
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.requests import RequestName, Requests, fingerprint
from palimpsest.internal.v1 import resolver_archiving_pb2 as internal
from palimpsest.v1 import memory_graph_pb2
from services.domain.scope import Scope

METHOD = "MemoryService.RestoreArchived"


class RestoreArchived:
    """Brings archived statements back. Idempotent by request_id. Costs nothing."""

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        requests: Requests,
        background: Background,
        seconds: float,
    ) -> None:
        """`seconds` is how long the call to the resolver may take; repeating it goes on where it was."""
        self._services = services
        self._graphs = graphs
        self._requests = requests
        self._background = background
        self._seconds = seconds

    async def __call__(
        self, scope: Scope, request: memory_graph_pb2.RestoreArchivedRequest, actor: str
    ) -> memory_graph_pb2.RestoreArchivedResponse:
        """How many came back. Raises GraphNotFound, StatementNotFound, RequestIdReused."""
        await self._graphs.check(scope, writing=True)
        name = RequestName(scope.tenant, METHOD, request.request_id, fingerprint(request), scope.graph)
        asked = internal.RestoreArchivedRequest(
            commit_id=request.request_id,
            statement_ids=request.statement_ids,
            actor=actor,
            request_id=request.request_id,
        )

        async def work() -> bytes:
            method = self._services.resolver.RestoreArchived
            done = await self._services.call(scope, method, asked, self._seconds)
            return memory_graph_pb2.RestoreArchivedResponse(
                restored_count=done.restored, revision=done.revision
            ).SerializeToString()

        # The caller may leave; what was begun is carried out all the same.
        answer, _ = await asyncio.shield(self._background.start(self._requests.once(name, work)))
        return memory_graph_pb2.RestoreArchivedResponse.FromString(answer)
