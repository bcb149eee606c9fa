"""The calls by which a graph, or one entity of it, is erased, as the resolver service serves them."""

from palimpsest.internal.v1 import erasing_pb2 as pb
from services.domain.ids import EntityId
from services.domain.scope import Scope
from services.resolver.erasing import ScopeErasing, stores_out
from services.resolver.removing import Removing


class Erasing:
    """A part of the resolver service, which sets `_scopes` and `_removing`."""

    _scopes: ScopeErasing
    _removing: Removing

    async def count_scope(self, scope: Scope, request: pb.CountScopeRequest) -> pb.CountScopeResponse:
        """How much there is of the graph, of whatever revision."""
        del request  # it names nothing: the scope does
        return pb.CountScopeResponse(stores=stores_out(await self._scopes.rows(scope)))

    async def erase_scope(self, scope: Scope, request: pb.EraseScopeRequest) -> pb.EraseScopeResponse:
        """Removes all of a graph; from now on nothing is written to it. Idempotent. Raises Conflict."""
        del request
        return pb.EraseScopeResponse(stores=stores_out(await self._scopes.erase(scope)))

    async def open_scope(self, scope: Scope, request: pb.OpenScopeRequest) -> pb.OpenScopeResponse:
        """Ends an erasure. Idempotent."""
        del request
        await self._scopes.open(scope)
        return pb.OpenScopeResponse()

    async def plan_entity_erasure(
        self, scope: Scope, request: pb.PlanEntityErasureRequest
    ) -> pb.PlanEntityErasureResponse:
        """See Removing.plan."""
        erased = await self._removing.plan(scope, EntityId(request.entity_id))
        return pb.PlanEntityErasureResponse(erased=erased)

    async def erase_entity(self, scope: Scope, request: pb.EraseEntityRequest) -> pb.EraseEntityResponse:
        """See Removing.erase."""
        return await self._removing.erase(scope, request)
