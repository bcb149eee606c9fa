"""GraphService: graphs and their settings; what a graph holds is asked of the services, through a port."""

from dataclasses import dataclass, field
from typing import Any, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import grpc.aio

from gateway.errors import ValidationFailed, Violation
from gateway.interceptors.call import current_caller
from gateway.store.graphs import GraphRow, Graphs
from gateway.store.job_view import timestamp
from palimpsest.v1 import graph_pb2
from palimpsest.v1.common_pb2 import RevisionStamp
from services.domain.scope import Scope

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class HeldFacts:
    """How much a graph holds, and its published revision."""

    counts: graph_pb2.GraphCounts = field(default_factory=graph_pb2.GraphCounts)
    revision: RevisionStamp = field(default_factory=RevisionStamp)


class GraphFacts(Protocol):
    """Asks the services what a graph holds."""

    async def facts(self, scope: Scope) -> HeldFacts:
        """Raises ServiceError when they can't be asked."""
        ...


class GraphServicer:
    """CreateGraph and GetGraph."""

    def __init__(self, graphs: Graphs, facts: GraphFacts) -> None:
        self._graphs = graphs
        self._facts = facts

    async def CreateGraph(
        self, request: graph_pb2.CreateGraphRequest, context: Context
    ) -> graph_pb2.CreateGraphResponse:
        check_settings(request.settings)
        scope = current_caller().scope(request.graph_id)
        row, created = await self._graphs.create(scope, request.settings)
        # A new graph holds nothing: the services needn't be up to make one.
        facts = HeldFacts() if created else await self._facts.facts(scope)
        return graph_pb2.CreateGraphResponse(graph=graph_message(row, facts), created=created)

    async def GetGraph(
        self, request: graph_pb2.GetGraphRequest, context: Context
    ) -> graph_pb2.GetGraphResponse:
        scope = current_caller().scope(request.graph_id)
        row = await self._graphs.get(scope)
        return graph_pb2.GetGraphResponse(graph=graph_message(row, await self._facts.facts(scope)))


def graph_message(row: GraphRow, facts: HeldFacts) -> graph_pb2.Graph:
    """The public form of a graph."""
    return graph_pb2.Graph(
        graph_id=row.scope.graph,
        settings=row.settings,
        counts=facts.counts,
        revision=facts.revision,
        created_at=timestamp(row.created_at),
        updated_at=timestamp(row.updated_at),
    )


def check_settings(settings: graph_pb2.GraphSettings) -> None:
    """What no rule beside a field can say. Raises ValidationFailed with all of it."""
    violations = []
    if settings.time_zone and not _is_time_zone(settings.time_zone):
        violations.append(Violation("settings.time_zone", "is not a known time zone", "time_zone.known"))
    aspects = [rule.aspect for rule in settings.retention]
    if len(set(aspects)) < len(aspects):
        violations.append(
            Violation("settings.retention", "at most one rule for an aspect", "retention.one_for_an_aspect")
        )
    if violations:
        raise ValidationFailed(*violations)


def _is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
