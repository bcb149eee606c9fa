"""MergeEntities and SplitEntity of MemoryService: from a call to a command and back."""

from typing import Any

import grpc.aio

from gateway.commands.merging import Merging
from gateway.interceptors.call import current_caller
from gateway.policy import TextPolicy
from palimpsest.v1 import memory_entities_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class MergingServicer:
    """A part of MemoryService, which sets `_merging` and `_policy`."""

    _merging: Merging
    _policy: TextPolicy

    async def MergeEntities(
        self, request: memory_entities_pb2.MergeEntitiesRequest, context: Context
    ) -> memory_entities_pb2.MergeEntitiesResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._merging.merge(scope, await self._policy(scope, request), caller.actor)

    async def SplitEntity(
        self, request: memory_entities_pb2.SplitEntityRequest, context: Context
    ) -> memory_entities_pb2.SplitEntityResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._merging.split(scope, await self._policy(scope, request), caller.actor)
