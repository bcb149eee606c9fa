"""Ingestion rules of a tenant: set and listed."""

from gateway.store.rules import IngestionRules, Rule
from palimpsest.v1 import graph_pb2
from services.domain.scope import TenantId
from services.stores.paging import Page


class Rules:
    """Sets and lists. Costs nothing; holds for texts that are understood from then on."""

    def __init__(self, rules: IngestionRules) -> None:
        self._rules = rules

    async def set(self, tenant: TenantId, rule: graph_pb2.IngestionRule) -> graph_pb2.IngestionRule:
        """The rule as it is now. Idempotent. Raises ValidationFailed, TooManyGraphs."""
        trust = rule.trust if rule.HasField("trust") else None
        kept = Rule(rule.source, trust, rule.instructions.strip())
        await self._rules.set(tenant, rule.graph_id, kept)
        return _shown(rule.graph_id, kept)

    async def listed(
        self, tenant: TenantId, graph: str, page: Page
    ) -> tuple[list[graph_pb2.IngestionRule], str]:
        """A page by source, and where the next begins. Raises GraphNotFound."""
        listed = await self._rules.list(tenant, graph, page)
        return [_shown(graph, rule) for rule in listed.items], listed.after


def _shown(graph: str, rule: Rule) -> graph_pb2.IngestionRule:
    return graph_pb2.IngestionRule(
        graph_id=graph, source=rule.source, trust=rule.trust, instructions=rule.instructions
    )
