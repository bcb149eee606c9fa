"""EraseGraph, EraseEntity, EraseTenant and GetErasure of PrivacyService: from calls to commands."""

from typing import Any

import grpc.aio

from gateway.commands.erasing import Asked, Erase
from gateway.interceptors.call import current_caller, downstream_seconds
from palimpsest.v1 import privacy_pb2
from services.domain.scope import TenantId

Context = grpc.aio.ServicerContext[Any, Any]


class ErasingServicer:
    """A part of PrivacyService, which sets `_erase`."""

    _erase: Erase

    async def EraseGraph(
        self, request: privacy_pb2.EraseGraphRequest, context: Context
    ) -> privacy_pb2.EraseGraphResponse:
        caller = current_caller()
        asked = Asked(request, request.request_id, caller.actor)
        erasure = await self._erase.graph(caller.scope(request.graph_id), asked)
        return privacy_pb2.EraseGraphResponse(erasure=erasure)

    async def EraseEntity(
        self, request: privacy_pb2.EraseEntityRequest, context: Context
    ) -> privacy_pb2.EraseEntityResponse:
        caller = current_caller()
        asked = Asked(request, request.request_id, caller.actor, downstream_seconds(caller))
        erasure = await self._erase.entity(caller.scope(request.graph_id), request, asked)
        return privacy_pb2.EraseEntityResponse(erasure=erasure)

    async def EraseTenant(
        self, request: privacy_pb2.EraseTenantRequest, context: Context
    ) -> privacy_pb2.EraseTenantResponse:
        asked = Asked(request, request.request_id, current_caller().actor)
        erasure = await self._erase.tenant(TenantId(request.tenant_id), asked)
        return privacy_pb2.EraseTenantResponse(erasure=erasure)

    async def GetErasure(
        self, request: privacy_pb2.GetErasureRequest, context: Context
    ) -> privacy_pb2.GetErasureResponse:
        erasure = await self._erase.find(current_caller().tenant, request.erasure_id)
        return privacy_pb2.GetErasureResponse(erasure=erasure)
