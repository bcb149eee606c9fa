"""Imports under way: who makes a graph that nobody sees yet, and for how long it is his.

A row of `graphs` with an owner is a graph in the making: reads don't find it, writes wait for it. The owner
renews his lease; one whose lease has run out is gone, and another takes his place.
"""

import uuid
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors import GraphExists, Overloaded
from gateway.store.clock import DatabaseClock
from gateway.store.erasing import refuse_erased
from gateway.store.follow_ups import want
from gateway.store.once import insert_once
from gateway.store.quotas import Quotas
from gateway.store.retention import first_due
from gateway.store.tables import graphs
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.sql.database import Database

LEASE_SECONDS = 120.0
"""How long an owner may be silent. He renews it four times as often."""
UNDER_WAY = "the import of this graph"


class Found(StrEnum):
    """How an import finds its place."""

    EMPTY = "empty"
    LEFT = "left"
    """One was begun and left: what it wrote must go, and what it may still write."""
    DONE = "done"
    """This very import has made the graph."""


@dataclass(frozen=True, slots=True)
class Making:
    """A graph that is made by an import. `hash` is of all that the import was asked with.

    `bytes` count to what the tenant may send in a day.
    """

    scope: Scope
    hash: str
    settings: GraphSettings
    created_at: Instant
    updated_at: Instant
    owner: str = ""
    bytes: int = 0


class Imports:
    """Imports of every tenant."""

    def __init__(self, database: Database, clock: DatabaseClock, quotas: Quotas) -> None:
        self._database = database
        self._clock = clock
        self._quotas = quotas

    async def begin(self, making: Making) -> tuple[str, Found]:
        """Takes a place; answers its owner's name and how it was found.

        Raises GraphExists, TooManyGraphs, DailyBytesExceeded, GraphBeingErased, and Overloaded while another
        import is at it.
        """
        owner, scope = uuid.uuid4().hex, making.scope
        async with self._database.write(scope) as connection:
            await refuse_erased(connection, self._clock, scope, writing=True)
            if await insert_once(connection, graphs, self._row(making, owner)) is not None:
                await self._quotas.graph_made(connection, scope.tenant)
                await self._quotas.text_taken(connection, scope.tenant, making.bytes)
                return owner, Found.EMPTY
            query = select(graphs).where(_is(scope)).with_for_update()
            row = (await connection.execute(query)).one_or_none()
            if row is None:
                raise Overloaded(UNDER_WAY)
            if row.import_owner is None:
                if row.import_hash == making.hash:
                    return "", Found.DONE
                raise GraphExists(scope.graph)
            if row.import_leased_until >= await self._now(connection):
                raise Overloaded(UNDER_WAY)
            await connection.execute(update(graphs).where(_is(scope)).values(self._row(making, owner)))
            return owner, Found.LEFT

    async def check(self, scope: Scope) -> None:
        """Raises GraphExists for a graph that no import made: nothing needs to be sent to learn that."""
        query = select(graphs.c.import_hash).where(_is(scope))
        async with self._database.read(scope) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is not None and row.import_hash is None:
            raise GraphExists(scope.graph)

    async def renew(self, scope: Scope, owner: str) -> bool:
        """Lets a lease live on; False when the place is another's."""
        async with self._database.write(scope) as connection:
            renewed = await connection.execute(
                update(graphs)
                .where(_is(scope), graphs.c.import_owner == owner)
                .values(import_leased_until=self._clock.after(LEASE_SECONDS))
            )
        return bool(renewed.rowcount)

    async def finish(self, scope: Scope, owner: str) -> bool:
        """Lets the graph be seen. False when the place is another's."""
        async with self._database.write(scope) as connection:
            finished = await connection.execute(
                update(graphs)
                .where(_is(scope), graphs.c.import_owner == owner)
                .values(import_owner=None, import_leased_until=None)
            )
            if finished.rowcount:
                await want(connection, self._clock, scope)
        return bool(finished.rowcount)

    async def give_up(self, scope: Scope, owner: str) -> None:
        """Leaves the place, once nothing of the graph is in the stores. Idempotent."""
        async with self._database.write(scope) as connection:
            await connection.execute(delete(graphs).where(_is(scope), graphs.c.import_owner == owner))

    async def _now(self, connection: AsyncConnection) -> int:
        return int((await connection.execute(select(self._clock.now()))).scalar_one())

    def _row(self, making: Making, owner: str) -> dict[str, object]:
        return {
            "tenant": making.scope.tenant,
            "id": making.scope.graph,
            "settings": making.settings.SerializeToString(deterministic=True),
            "created_at": making.created_at,
            "updated_at": making.updated_at,
            "origin": making.scope.origin or None,
            "import_hash": making.hash,
            "import_owner": owner,
            "import_leased_until": self._clock.after(LEASE_SECONDS),
            "retention_due_at": first_due(making.settings, self._clock),
        }


def _is(scope: Scope) -> ColumnElement[bool]:
    return and_(graphs.c.tenant == scope.tenant, graphs.c.id == scope.graph)
