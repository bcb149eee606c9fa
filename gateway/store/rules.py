"""Ingestion rules: what a tenant says of the texts of one source, in one graph or in all of its graphs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, select

from gateway.errors import ValidationFailed, Violation
from gateway.store.clock import DatabaseClock
from gateway.store.graphs import Graphs
from gateway.store.tables import ingestion_rules
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.isolation import OfTenant
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import insert_or_update

MOST_RULES = 1_000
"""Of one graph, and of a tenant for all graphs: sources are systems and channels, not texts."""
_EVERY_GRAPH = ""
TRUSTED_FROM = 0.5
"""A source with less trust is distrusted: what of it is shaped like orders to this memory is held back."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for texts of `source`. `trust` is 0 to 1, None where it is not said; no words: ""."""

    source: str
    trust: float | None = None
    instructions: str = ""

    @property
    def says_nothing(self) -> bool:
        return self.trust is None and not self.instructions


@dataclass(frozen=True, slots=True)
class Ruled:
    """What rules come to for one text: words for the model, the tenant's first, and what its claims weigh."""

    instructions: Sequence[str] = ()
    trust: float = 1.0

    @property
    def distrusted(self) -> bool:
        return self.trust < TRUSTED_FROM


class IngestionRules:
    """Rules of every tenant, by graph ("": every graph) and source."""

    def __init__(
        self, database: Database, clock: DatabaseClock, graphs: Graphs, most: int = MOST_RULES
    ) -> None:
        self._most = most
        self._database = database
        self._clock = clock
        self._graphs = graphs

    async def set(self, tenant: TenantId, graph: str, rule: Rule) -> None:
        """Puts a rule in the place of the one of its source; one that says nothing removes it. Idempotent.

        Makes the graph if it isn't there. Raises ValidationFailed beyond `most` of a graph, TooManyGraphs.
        """
        where = _of(tenant, graph)
        async with self._database.write(OfTenant(tenant)) as connection:
            if graph != _EVERY_GRAPH:
                await self._graphs.ensure(connection, Scope(tenant, GraphId(graph)))
            if rule.says_nothing:
                mine = and_(where, ingestion_rules.c.source == rule.source)
                await connection.execute(delete(ingestion_rules).where(mine))
                return
            row = {
                "tenant": tenant,
                "graph": graph,
                "source": rule.source,
                "trust": rule.trust,
                "instructions": rule.instructions,
                "updated_at": await connection.scalar(select(self._clock.now())),
            }
            changing = ("trust", "instructions", "updated_at")
            await insert_or_update(connection, ingestion_rules, [row], changing)
            count = await connection.scalar(select(func.count()).select_from(ingestion_rules).where(where))
            if (count or 0) > self._most:
                told = f"at most {self._most:,} rules for a graph"
                raise ValidationFailed(Violation("rule", told, "rules.most"))

    async def list(self, tenant: TenantId, graph: str, page: Page) -> Listed[Rule]:
        """Rules of a graph, or those for every graph, by source. Raises GraphNotFound.

        Raises ValueError for a position that no list of rules gave.
        """
        if graph != _EVERY_GRAPH:
            await self._graphs.check(Scope(tenant, GraphId(graph)))
        query = select(ingestion_rules).where(_of(tenant, graph))
        async with self._database.read(OfTenant(tenant)) as connection:
            listed = await page_of(connection, query, [ingestion_rules.c.source], page)
        return Listed([_rule_of(row) for row in listed.items], listed.after)

    async def for_text(self, scope: Scope, source: str) -> Ruled:
        """What holds for a text of `source` in a graph.

        Words for every graph come before those for this one; the graph's own trust goes before the tenant's.
        """
        if not source:
            return Ruled()
        mine = and_(
            ingestion_rules.c.tenant == scope.tenant,
            ingestion_rules.c.graph.in_([_EVERY_GRAPH, scope.graph]),
            ingestion_rules.c.source == source,
        )
        async with self._database.read(scope) as connection:
            rows = (await connection.execute(select(ingestion_rules).where(mine))).mappings().all()
        rules = [_rule_of(row) for row in sorted(rows, key=lambda row: row["graph"] != _EVERY_GRAPH)]
        trusts = [rule.trust for rule in rules if rule.trust is not None]
        words = tuple(rule.instructions for rule in rules if rule.instructions)
        return Ruled(words, trusts[-1] if trusts else 1.0)


def _of(tenant: TenantId, graph: str) -> ColumnElement[bool]:
    return and_(ingestion_rules.c.tenant == tenant, ingestion_rules.c.graph == graph)


def _rule_of(row: Mapping[Any, Any]) -> Rule:
    return Rule(row["source"], row["trust"], row["instructions"])
