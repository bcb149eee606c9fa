"""GraphService: graphs and their settings; what a graph holds is asked of the services, through a port."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import grpc.aio
from google.protobuf.descriptor import Descriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from gateway.commands.rules import Rules
from gateway.errors import ValidationFailed, Violation
from gateway.interceptors.call import current_caller
from gateway.paging import page_of, token_of
from gateway.patterns import check
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
    """Graphs and what the gateway itself keeps of them: settings and ingestion rules."""

    def __init__(
        self, graphs: Graphs, rules: Rules, facts: GraphFacts, offered_models: frozenset[str] = frozenset()
    ) -> None:
        """`offered_models` are those that graphs may choose."""
        self._offered_models = offered_models
        self._graphs = graphs
        self._rules = rules
        self._facts = facts

    async def CreateGraph(
        self, request: graph_pb2.CreateGraphRequest, context: Context
    ) -> graph_pb2.CreateGraphResponse:
        await asyncio.to_thread(check_settings, request.settings, self._offered_models)
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

    async def UpdateGraph(
        self, request: graph_pb2.UpdateGraphRequest, context: Context
    ) -> graph_pb2.UpdateGraphResponse:
        check_mask(request.update_mask)
        await asyncio.to_thread(check_settings, request.settings, self._offered_models)

        def change(settings: graph_pb2.GraphSettings) -> graph_pb2.GraphSettings:
            changed = graph_pb2.GraphSettings()
            changed.CopyFrom(settings)
            for path in request.update_mask.paths:
                _clear(changed, path)
            request.update_mask.MergeMessage(request.settings, changed, replace_repeated_field=True)
            return changed

        scope = current_caller().scope(request.graph_id)
        row = await self._graphs.update(scope, change)
        return graph_pb2.UpdateGraphResponse(graph=graph_message(row, await self._facts.facts(scope)))

    async def ListGraphs(
        self, request: graph_pb2.ListGraphsRequest, context: Context
    ) -> graph_pb2.ListGraphsResponse:
        tenant = current_caller().tenant
        listed = await self._graphs.list(tenant, page_of(tenant, request))
        return graph_pb2.ListGraphsResponse(
            graphs=[graph_message(row) for row in listed.items],
            next_page_token=token_of(tenant, request, listed.after),
        )

    async def SetIngestionRule(
        self, request: graph_pb2.SetIngestionRuleRequest, context: Context
    ) -> graph_pb2.SetIngestionRuleResponse:
        rule = await self._rules.set(current_caller().tenant, request.rule)
        return graph_pb2.SetIngestionRuleResponse(rule=rule)

    async def ListIngestionRules(
        self, request: graph_pb2.ListIngestionRulesRequest, context: Context
    ) -> graph_pb2.ListIngestionRulesResponse:
        tenant = current_caller().tenant
        rules, after = await self._rules.listed(tenant, request.graph_id, page_of(tenant, request))
        return graph_pb2.ListIngestionRulesResponse(
            rules=rules, next_page_token=token_of(tenant, request, after)
        )


_NOT_ASKED = HeldFacts()


def graph_message(row: GraphRow, facts: HeldFacts = _NOT_ASKED) -> graph_pb2.Graph:
    """The public form of a graph; without `facts`, of its settings alone."""
    return graph_pb2.Graph(
        graph_id=row.scope.graph,
        settings=row.settings,
        counts=facts.counts,
        revision=facts.revision,
        created_at=timestamp(row.created_at),
        updated_at=timestamp(row.updated_at),
    )


def check_mask(mask: FieldMask) -> None:
    """Raises ValidationFailed unless each path is a field of the settings, and there is one."""
    unknown = [path for path in mask.paths if not _is_field(graph_pb2.GraphSettings.DESCRIPTOR, path)]
    violations = [
        Violation("update_mask", f"{path[:64]!r} is no field of settings", "update_mask.known")
        for path in unknown
    ]
    if not mask.paths:
        violations.append(Violation("update_mask", "names no field", "update_mask.some"))
    if violations:
        raise ValidationFailed(*violations)


def check_settings(settings: graph_pb2.GraphSettings, offered_models: frozenset[str] = frozenset()) -> None:
    """What no rule beside a field can say. Raises ValidationFailed with all of it."""
    violations = [
        Violation(f"settings.models.{name}", "is no model that is offered", "models.offered")
        for name in ("medium_model", "low_model")
        if (model := getattr(settings.models, name)) and model not in offered_models
    ]
    if settings.time_zone and not _is_time_zone(settings.time_zone):
        violations.append(Violation("settings.time_zone", "is not a known time zone", "time_zone.known"))
    aspects = [rule.aspect for rule in settings.retention]
    if len(set(aspects)) < len(aspects):
        violations.append(
            Violation("settings.retention", "at most one rule for an aspect", "retention.one_for_an_aspect")
        )
    violations += [
        Violation(f"settings.redaction.patterns[{number}]", why, "redaction.patterns.safe")
        for number, why in check(settings.redaction.patterns)
    ]
    if violations:
        raise ValidationFailed(*violations)


def _is_field(message: Descriptor, path: str) -> bool:
    """True for a field of the message, or of a message in it: `models.low_model`."""
    name, _, rest = path.partition(".")
    field = message.fields_by_name.get(name)
    if field is None or not rest:
        return field is not None
    inner = field.message_type
    return inner is not None and not field.is_repeated and _is_field(inner, rest)


def _clear(message: Message, path: str) -> None:
    name, _, rest = path.partition(".")
    if not rest:
        message.ClearField(name)
    elif message.HasField(name):
        _clear(getattr(message, name), rest)


def _is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
