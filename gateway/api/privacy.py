"""PrivacyService: erasing, and who did what."""

from typing import Any

import grpc.aio

from gateway.api.erasing import ErasingServicer
from gateway.commands.auditing import ListAuditEvents
from gateway.commands.erasing import Erase
from gateway.interceptors.call import current_caller, downstream_seconds
from gateway.paging import page_of, token_of
from palimpsest.v1 import privacy_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class PrivacyServicer(ErasingServicer):
    """Erasures and ListAuditEvents."""

    def __init__(self, erase: Erase, audit: ListAuditEvents) -> None:
        self._erase = erase
        self._audit = audit

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
