"""ListAuditEvents: the gateway's log of calls and the graphs' logs of decisions as one list, newest first."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.convert.times import instant_of, timestamp
from gateway.errors import ValidationFailed, Violation
from gateway.services import Services
from gateway.store.calls import Call, CallFilter, CallLog
from gateway.store.graphs import Graphs
from palimpsest.internal.v1 import recall_decisions_pb2 as internal
from palimpsest.v1 import privacy_pb2
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.paging import NotAPosition, Page

MOST_GRAPHS = 200
"""Logs that are read for one page; a tenant with more graphs names the one it asks about."""
_AT_ONCE = 8
_ACTORS = {
    "model": privacy_pb2.AUDIT_ACTOR_MODEL,
    "rule": privacy_pb2.AUDIT_ACTOR_RULE,
    "upkeep": privacy_pb2.AUDIT_ACTOR_OPERATOR,
    "call": privacy_pb2.AUDIT_ACTOR_API_KEY,
}
_KEY = "key:"


_POSITION = re.compile(r"([0-7][0-9a-f]{15})-(.{1,256})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Position:
    """Where an event stands in the list: its time, then its id. As text it grows with time."""

    at: Instant
    id: str

    @property
    def text(self) -> str:
        return f"{self.at:016x}-{self.id}"

    @classmethod
    def of(cls, text: str) -> "Position | None":
        """The position that `text` tells; None for "". Raises ValueError for anything else."""
        if not text:
            return None
        found = _POSITION.fullmatch(text)
        if found is None:
            raise NotAPosition
        return cls(Instant(int(found[1], 16)), found[2])


class ListAuditEvents:
    """Who did what to a tenant's memory. Only the tenant's own.

    An act can be two events: the call that asked for it (`EndStatement`), and what was decided in the graph
    (`end_statement`); they share the request id.
    """

    def __init__(self, services: Services, graphs: Graphs, calls: CallLog) -> None:
        self._services = services
        self._graphs = graphs
        self._calls = calls

    async def __call__(
        self,
        tenant: TenantId,
        request: privacy_pb2.ListAuditEventsRequest,
        after: str,
        size: int,
        timeout_seconds: float,
    ) -> tuple[list[privacy_pb2.AuditEvent], str]:
        """A page, and the position of its last event ("" when there is no more).

        Raises GraphNotFound, ValidationFailed (more graphs than can be read together).
        """
        scopes = await self._scopes(tenant, request.graph_id)
        position, limit = Position.of(after), size + 1
        calls = await self._calls.find(tenant, _calls_wanted(request, position), limit)
        found = [(Position(one.at or Instant(0), one.id), _of_call(one)) for one in calls]
        wanted, turns = _decisions_wanted(request, position, limit), asyncio.Semaphore(_AT_ONCE)

        async def decided(scope: Scope) -> Sequence[internal.Decision]:
            async with turns:
                method = self._services.recall.ListDecisions
                return (await self._services.call(scope, method, wanted, timeout_seconds)).decisions

        for scope, decisions in zip(scopes, await asyncio.gather(*map(decided, scopes)), strict=True):
            found += [
                (Position(Instant(one.at), one.id), _of_decision(one, scope.graph)) for one in decisions
            ]
        found.sort(key=lambda each: (each[0].at, each[0].id), reverse=True)
        for place, event in found[:size]:
            event.event_id = place.text
        more = len(found) > size
        return [event for _, event in found[:size]], found[size - 1][0].text if more else ""

    async def _scopes(self, tenant: TenantId, graph: str) -> Sequence[Scope]:
        if graph:
            scope = Scope(tenant, GraphId(graph))
            await self._graphs.check(scope)
            return [scope]
        listed = await self._graphs.list(tenant, Page(MOST_GRAPHS + 1))
        scopes = [row.scope for row in listed.items]
        if len(scopes) > MOST_GRAPHS:
            raise ValidationFailed(
                Violation("graph_id", f"name one: there are more than {MOST_GRAPHS} graphs", "audit.graphs")
            )
        return scopes


def _calls_wanted(request: privacy_pb2.ListAuditEventsRequest, after: Position | None) -> CallFilter:
    return CallFilter(
        graph=request.graph_id,
        action=request.action,
        target=request.target_id,
        since=instant_of(request.created_from) if request.HasField("created_from") else None,
        until=instant_of(request.created_until) if request.HasField("created_until") else None,
        after=(after.at, after.id) if after else None,
    )


def _decisions_wanted(
    request: privacy_pb2.ListAuditEventsRequest, after: Position | None, limit: int
) -> internal.ListDecisionsRequest:
    wanted = internal.ListDecisionsRequest(action=request.action, target=request.target_id, limit=limit)
    if request.HasField("created_from"):
        wanted.since = instant_of(request.created_from)
    if request.HasField("created_until"):
        wanted.until = instant_of(request.created_until)
    if after is not None:
        wanted.after_at, wanted.after_id = after.at, after.id
    return wanted


def _of_call(call: Call) -> privacy_pb2.AuditEvent:
    return privacy_pb2.AuditEvent(
        created_at=timestamp(call.at),
        graph_id=call.graph,
        actor=privacy_pb2.AUDIT_ACTOR_OPERATOR if call.operator else privacy_pb2.AUDIT_ACTOR_API_KEY,
        key_id=call.key,
        action=call.action,
        target_ids=call.targets,
        reason=call.reason,
        revision=call.revision,
        request_id=call.request,
    )


def _of_decision(decision: internal.Decision, graph: str) -> privacy_pb2.AuditEvent:
    by_key = decision.actor.startswith(_KEY)
    return privacy_pb2.AuditEvent(
        created_at=timestamp(decision.at),
        graph_id=graph,
        actor=privacy_pb2.AUDIT_ACTOR_API_KEY
        if by_key
        else _ACTORS.get(decision.actor, privacy_pb2.AUDIT_ACTOR_UNSPECIFIED),
        key_id=decision.actor.removeprefix(_KEY) if by_key else "",
        action=decision.action,
        target_ids=[id for id in (decision.target, decision.other) if id],
        reason=decision.why,
        model=decision.model,
        prompt_version=decision.prompt_version,
        revision=decision.revision,
        request_id=decision.request,
    )
