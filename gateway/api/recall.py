"""RecallService: from a call to a command and back."""

from typing import Any

import grpc.aio

from gateway.commands.asking import Recall
from gateway.commands.reads import Reads
from gateway.interceptors.call import current_caller, downstream_seconds
from gateway.policy import TextPolicy
from palimpsest.v1 import recall_pb2, recall_subgraph_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class RecallServicer:
    """Recall and GetSubgraph."""

    def __init__(self, recall: Recall, reads: Reads, policy: TextPolicy) -> None:
        self._policy = policy
        self._recall = recall
        self._reads = reads

    async def Recall(self, request: recall_pb2.RecallRequest, context: Context) -> recall_pb2.RecallResponse:
        caller = current_caller()
        scopes = [caller.scope(graph) for graph in request.graph_ids]
        for scope in scopes:
            # Whatever one of the graphs blacks out, none is asked for.
            request = await self._policy(scope, request)
        return await self._recall(scopes, request, downstream_seconds(caller))

    async def GetSubgraph(
        self, request: recall_subgraph_pb2.GetSubgraphRequest, context: Context
    ) -> recall_subgraph_pb2.GetSubgraphResponse:
        caller = current_caller()
        return await self._reads.subgraph(caller.scope(request.graph_id), request, downstream_seconds(caller))
