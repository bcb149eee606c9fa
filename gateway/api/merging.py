"""MergeEntities and SplitEntity of MemoryService: from a call to a command and back."""

from typing import Any

import grpc.aio

from gateway.commands.merging import Merging
from gateway.interceptors.call import current_caller
from palimpsest.v1 import memory_entities_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class MergingServicer:
    """A part of MemoryService, which sets `_merging`."""

    _merging: Merging

    async def MergeEntities(
        self, request: memory_entities_pb2.MergeEntitiesRequest, context: Context
    ) -> memory_entities_pb2.MergeEntitiesResponse:
        caller = current_caller()
        return await self._merging.merge(caller.scope(request.graph_id), request, f"key:{caller.key}")

    async def SplitEntity(
        self, request: memory_entities_pb2.SplitEntityRequest, context: Context
    ) -> memory_entities_pb2.SplitEntityResponse:
        caller = current_caller()
        return await self._merging.split(caller.scope(request.graph_id), request, f"key:{caller.key}")
