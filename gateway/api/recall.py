"""RecallService: from a call to a command and back."""

from typing import Any

import grpc.aio

from gateway.commands.asking import Recall
from gateway.commands.reads import Place, Reads
from gateway.commands.summaries import Summaries
from gateway.interceptors.call import current_caller, downstream_seconds
from gateway.paging import page_of, token_of
from gateway.policy import TextPolicy
from palimpsest.v1 import recall_pb2, recall_subgraph_pb2, recall_summaries_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class RecallServicer:
    """All of it."""

    def __init__(self, recall: Recall, reads: Reads, summaries: Summaries, policy: TextPolicy) -> None:
        self._summaries = summaries
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

    async def GetPersona(
        self, request: recall_summaries_pb2.GetPersonaRequest, context: Context
    ) -> recall_summaries_pb2.GetPersonaResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._summaries.persona(scope, request, downstream_seconds(caller))

    async def UpdatePersona(
        self, request: recall_summaries_pb2.UpdatePersonaRequest, context: Context
    ) -> recall_summaries_pb2.UpdatePersonaResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        request = await self._policy(scope, request)
        return await self._summaries.update_persona(scope, request, f"key:{caller.key}")

    async def ListLabels(
        self, request: recall_summaries_pb2.ListLabelsRequest, context: Context
    ) -> recall_summaries_pb2.ListLabelsResponse:
        caller = current_caller()
        asked = page_of(caller.tenant, request)
        scope, place = caller.scope(request.graph_id), Place.of(asked.after)
        page, following = await self._summaries.labels(
            scope, request, place, asked.size, downstream_seconds(caller)
        )
        page.next_page_token = token_of(caller.tenant, request, following.text if following else "")
        return page

    async def GetSessionSummary(
        self, request: recall_summaries_pb2.GetSessionSummaryRequest, context: Context
    ) -> recall_summaries_pb2.GetSessionSummaryResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._summaries.session(scope, request, downstream_seconds(caller))
