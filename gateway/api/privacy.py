"""PrivacyService: erasing, taking out, bringing back, and who did what."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc.aio

from gateway.api.erasing import ErasingServicer
from gateway.commands.auditing import ListAuditEvents
from gateway.commands.erasing import Erase
from gateway.commands.exporting import ExportGraph
from gateway.commands.importing import ImportGraph, Messages
from gateway.interceptors.call import current_caller, downstream_seconds
from gateway.paging import page_of, token_of
from palimpsest.v1 import privacy_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class PrivacyServicer(ErasingServicer):
    """Erasures, ExportGraph, ImportGraph and ListAuditEvents."""

    def __init__(
        self, erase: Erase, audit: ListAuditEvents, export: ExportGraph, take_in: ImportGraph
    ) -> None:
        self._erase = erase
        self._audit = audit
        self._export = export
        self._import = take_in

    async def ExportGraph(
        self, request: privacy_pb2.ExportGraphRequest, context: Context
    ) -> AsyncIterator[privacy_pb2.ExportGraphResponse]:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        async with aclosing(self._export(scope, request, caller, downstream_seconds(caller))) as parts:
            async for part in parts:
                yield part

    async def ImportGraph(self, messages: Messages, context: Context) -> privacy_pb2.ImportGraphResponse:
        return await self._import(messages, current_caller())

    async def ListAuditEvents(
        self, request: privacy_pb2.ListAuditEventsRequest, context: Context
    ) -> privacy_pb2.ListAuditEventsResponse:
        caller = current_caller()
        page = page_of(caller.tenant, request)
        events, after = await self._audit(
            caller.tenant, request, page.after, page.size, downstream_seconds(caller)
        )
        return privacy_pb2.ListAuditEventsResponse(
            events=events, next_page_token=token_of(caller.tenant, request, after)
        )
