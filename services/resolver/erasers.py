"""The calls by which a graph, or one entity of it, is erased, as the resolver service serves them."""

from palimpsest.internal.v1 import erasing_pb2 as pb
from palimpsest.internal.v1 import resolver_carrying_pb2 as carrying_pb
from services.domain.ids import EntityId
from services.domain.scope import Scope
from services.resolver.erasing import ScopeErasing, stores_out
from services.resolver.removing import Removing

Fenced = pb.EraseScopeRequest | pb.OpenScopeRequest | pb.EraseEntityRequest | carrying_pb.DiscardImportRequest


def generation_in(request: Fenced) -> int | None:
    """The generation that the caller read; None where he names none."""
    return request.generation if request.HasField("generation") else None


class Erasing:
    """A part of the resolver service, which sets `_scopes` and `_removing`."""

    _scopes: ScopeErasing
    _removing: Removing

    async def read_generation(
        self, scope: Scope, request: pb.ReadGenerationRequest
    ) -> pb.ReadGenerationResponse:
        """The generation that the calls below are told: they are refused when it is over."""
        del request
        return pb.ReadGenerationResponse(generation=await self._scopes.generation(scope))

    async def count_scope(self, scope: Scope, request: pb.CountScopeRequest) -> pb.CountScopeResponse:
        """How much there is of the graph, of whatever revision."""
        del request  # it names nothing: the scope does
        return pb.CountScopeResponse(stores=stores_out(await self._scopes.rows(scope)))

    async def erase_scope(self, scope: Scope, request: pb.EraseScopeRequest) -> pb.EraseScopeResponse:
        """Removes all of a graph; from now on nothing is written to it. Idempotent. Raises Conflict."""
        left = await self._scopes.erase(scope, generation_in(request))
        return pb.EraseScopeResponse(stores=stores_out(left))

    async def open_scope(self, scope: Scope, request: pb.OpenScopeRequest) -> pb.OpenScopeResponse:
        """Ends an erasure. Idempotent."""
        await self._scopes.open(scope, generation_in(request))
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
