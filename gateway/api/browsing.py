"""The lists and cards of MemoryService: from a call to a command and back."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc.aio
from google.protobuf.message import Message

from gateway.commands.browsing import Browsing
from gateway.commands.reads import Place
from gateway.interceptors.call import current_caller, downstream_seconds
from gateway.paging import page_of, token_of
from palimpsest.v1 import memory_entities_pb2, memory_episodes_pb2, memory_graph_pb2, memory_voice_pb2

Context = grpc.aio.ServicerContext[Any, Any]


Answer = TypeVar("Answer", bound=Message)


async def _paged(listing: Callable[..., Awaitable[tuple[Answer, Place | None]]], request: Any) -> Answer:
    """A page of one of Browsing's lists, with the token of the next."""
    caller = current_caller()
    asked = page_of(caller.tenant, request)
    scope, seconds = caller.scope(request.graph_id), downstream_seconds(caller)
    page, following = await listing(scope, request, Place.of(asked.after), asked.size, seconds)
    answer: Any = page
    answer.next_page_token = token_of(caller.tenant, request, following.text if following else "")
    return page


class BrowsingServicer:
    """ListEpisodes, ListVoiceAspects, GetEntity, ListEntities, DiffGraph: a part of MemoryService."""

    def __init__(self, browsing: Browsing) -> None:
        self._browsing = browsing

    async def ListEpisodes(
        self, request: memory_episodes_pb2.ListEpisodesRequest, context: Context
    ) -> memory_episodes_pb2.ListEpisodesResponse:
        return await _paged(self._browsing.episodes, request)

    async def ListVoiceAspects(
        self, request: memory_voice_pb2.ListVoiceAspectsRequest, context: Context
    ) -> memory_voice_pb2.ListVoiceAspectsResponse:
        return await _paged(self._browsing.voice, request)

    async def GetEntity(
        self, request: memory_entities_pb2.GetEntityRequest, context: Context
    ) -> memory_entities_pb2.GetEntityResponse:
        caller = current_caller()
        return await self._browsing.entity(
            caller.scope(request.graph_id), request, downstream_seconds(caller)
        )

    async def ListEntities(
        self, request: memory_entities_pb2.ListEntitiesRequest, context: Context
    ) -> memory_entities_pb2.ListEntitiesResponse:
        return await _paged(self._browsing.entities, request)

    async def DiffGraph(
        self, request: memory_graph_pb2.DiffGraphRequest, context: Context
    ) -> memory_graph_pb2.DiffGraphResponse:
        return await _paged(self._browsing.diff, request)
