"""Graphs of tenants and their settings. The first write makes a graph; reads of an unknown one fail."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.credits.prices import newest_version
from gateway.errors import GraphBeingErased, GraphExists, GraphNotFound, Overloaded
from gateway.store.clock import DatabaseClock
from gateway.store.erasing import being_erased, refuse_erased, refuses_reads
from gateway.store.imports import UNDER_WAY
from gateway.store.once import insert_once
from gateway.store.quotas import Quotas
from gateway.store.retention import first_due
from gateway.store.tables import graphs
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across, OfTenant
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import Key

_THERE = graphs.c.import_owner.is_(None)
"""A graph that an import makes is not there until it is whole."""
# Made once, as each call of the API asks them.
_NAMED = and_(graphs.c.tenant == bindparam("of_tenant"), graphs.c.id == bindparam("named"))
_GRAPH = select(graphs).where(_NAMED, _THERE)
_ORIGIN = select(graphs.c.origin).where(_NAMED)
_UPKEEP = Across("upkeep: an operator's work on the stores meets every graph")


@dataclass(frozen=True, slots=True)
class GraphRow:
    """A graph as the gateway knows it: its settings, not what it holds."""

    scope: Scope
    settings: GraphSettings
    created_at: Instant
    updated_at: Instant


class Graphs:
    """Graphs of every tenant."""

    def __init__(self, database: Database, clock: DatabaseClock, quotas: Quotas) -> None:
        self._database = database
        self._clock = clock
        self._quotas = quotas
        self._asked = _asked(clock)

    async def create(self, scope: Scope, settings: GraphSettings) -> tuple[GraphRow, bool]:
        """Makes a graph; False if it was there. Raises GraphExists (other settings), TooManyGraphs."""
        async with self._database.write(scope) as connection:
            created = await self.ensure(connection, scope, settings)
        found = await self.get(scope)
        if found.settings != settings:
            raise GraphExists(scope.graph)
        return found, created

    async def ensure(
        self, connection: AsyncConnection, scope: Scope, settings: GraphSettings | None = None
    ) -> bool:
        """Makes a graph in the caller's transaction unless it is there; answers whether it was made.

        Raises TooManyGraphs, GraphBeingErased, EntityBeingErased, and Overloaded while an import makes it.
        Locks the tenant when it makes one: lock its account after this.
        """
        await refuse_erased(connection, self._clock, scope, writing=True)
        row = {
            "tenant": scope.tenant,
            "id": scope.graph,
            "settings": (settings or GraphSettings()).SerializeToString(deterministic=True),
            "created_at": self._clock.now(),
            "updated_at": self._clock.now(),
            "origin": scope.origin or None,
            "retention_due_at": first_due(settings or GraphSettings(), self._clock),
        }
        if await insert_once(connection, graphs, row) is not None:
            await self._quotas.graph_made(connection, scope.tenant)
            return True
        making = select(graphs.c.import_owner).where(
            graphs.c.tenant == scope.tenant, graphs.c.id == scope.graph, graphs.c.import_owner.is_not(None)
        )
        if (await connection.execute(making)).first() is not None:
            raise Overloaded(UNDER_WAY)
        return False

    async def get(self, scope: Scope, *, writing: bool = False) -> GraphRow:
        """Raises GraphNotFound, the same for a graph of another tenant; GraphBeingErased.

        `writing`: the caller is about to change it, which also waits for the erasure of an entity: raises
        EntityBeingErased.
        """
        asked = {"of_tenant": scope.tenant, "named": scope.graph}
        async with self._database.read(scope) as connection:
            row = (await connection.execute(_GRAPH, asked)).one_or_none()
            await refuse_erased(connection, self._clock, scope, writing=writing)
        if row is None:
            raise GraphNotFound(scope.graph)
        return _graph_of(row._mapping)

    async def asked(self, scopes: Sequence[Scope]) -> tuple[Sequence[GraphRow], str | None]:
        """As `get`, all that a question needs to know of graphs of one tenant, in one statement.

        With them the version of the prices of now (gateway/credits/prices.py), None where none was published.
        """
        tenant = OfTenant(scopes[0].tenant)
        named = {"of_tenant": tenant.tenant, "named": sorted({scope.graph for scope in scopes})}
        async with self._database.read(tenant) as connection:
            read = {row["id"]: row for row in (await connection.execute(self._asked, named)).mappings()}
        for scope in scopes:
            row = read.get(scope.graph)
            if row is None:
                await self.get(scope)
                # It was made between the two.
                return await self.asked(scopes)
            if row["erased"]:
                raise GraphBeingErased(scope.graph)
        return [_graph_of(read[scope.graph]) for scope in scopes], read[scopes[0].graph]["prices"]

    async def list(self, tenant: TenantId, page: Page) -> Listed[GraphRow]:
        """The tenant's graphs by id, without those that are being erased.

        Raises ValueError for a position that no list of graphs gave.
        """
        erased = being_erased(graphs.c.tenant, graphs.c.id)
        query = select(graphs).where(graphs.c.tenant == tenant, _THERE, ~erased)
        async with self._database.read(OfTenant(tenant)) as connection:
            listed = await page_of(connection, query, [graphs.c.id], page)
        return Listed([_graph_of(row) for row in listed.items], listed.after)

    async def update(self, scope: Scope, change: Callable[[GraphSettings], GraphSettings]) -> GraphRow:
        """Gives a graph other settings; two at a time follow one another. Raises GraphNotFound.

        The same settings again change nothing, not even when it was last changed.
        """
        mine = and_(graphs.c.tenant == scope.tenant, graphs.c.id == scope.graph, _THERE)
        async with self._database.write(scope) as connection:
            row = (await connection.execute(select(graphs).where(mine).with_for_update())).one_or_none()
            await refuse_erased(connection, self._clock, scope, writing=True)
            if row is None:
                raise GraphNotFound(scope.graph)
            before = GraphSettings.FromString(row.settings)
            changed = change(before)
            written = changed.SerializeToString(deterministic=True)
            if written != bytes(row.settings):
                values: dict[str, Any] = {"settings": written, "updated_at": self._clock.now()}
                if changed.retention != before.retention:
                    values["retention_due_at"] = first_due(changed, self._clock)
                await connection.execute(update(graphs).where(mine).values(values))
        return await self.get(scope)

    async def every(self, tenant: TenantId | None = None, *, making: bool = False) -> Sequence[GraphRow]:
        """Graphs of every tenant, or of one, in the order of their names; for work on the stores.

        `making`: those too that an import is making, or left.
        """
        query = select(graphs).order_by(graphs.c.tenant, graphs.c.id)
        if not making:
            query = query.where(_THERE)
        if tenant is not None:
            query = query.where(graphs.c.tenant == tenant)
        async with self._database.read(_UPKEEP) as connection:
            return [_graph_of(row) for row in (await connection.execute(query)).mappings()]

    async def origin(self, scope: Scope) -> str:
        """Of an imported graph, whence its ids follow (services/domain/scope.py); "" of any other."""
        asked = {"of_tenant": scope.tenant, "named": scope.graph}
        async with self._database.read(scope) as connection:
            return (await connection.execute(_ORIGIN, asked)).scalar_one_or_none() or ""

    async def check(self, scope: Scope, *, writing: bool = False) -> None:
        """As `get`: what every read of memory, and every write (`writing`), asks first."""
        await self.get(scope, writing=writing)


def _asked(clock: DatabaseClock) -> Select[Any]:
    tenant, named = bindparam("of_tenant", type_=Key), bindparam("named", type_=Key, expanding=True)
    erased = refuses_reads(clock, graphs.c.tenant, graphs.c.id).label("erased")
    prices = newest_version().label("prices")
    return select(graphs, erased, prices).where(graphs.c.tenant == tenant, graphs.c.id.in_(named), _THERE)


def _graph_of(row: Mapping[Any, Any]) -> GraphRow:
    scope = Scope(TenantId(row["tenant"]), GraphId(row["id"]), row["origin"] or "")
    settings = GraphSettings.FromString(row["settings"])
    return GraphRow(scope, settings, Instant(row["created_at"]), Instant(row["updated_at"]))
