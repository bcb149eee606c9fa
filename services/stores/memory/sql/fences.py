"""Fences in SQL, and their check in the transactions of writers."""

from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.scope import Scope
from services.stores.errors import ScopeErased, WriteConflict
from services.stores.memory.fences import Fence
from services.stores.memory.sql import schema
from services.stores.memory.sql.dropping import drop_snapshots
from services.stores.sql.database import Database
from services.stores.sql.rows import insert_new

_FENCES = schema.fences.c


class SqlFenceStore:
    """FenceStore over a table of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fence(self, scope: Scope) -> Fence:
        async with self._database.read(scope) as connection:
            return await fence_of(connection, scope)

    async def put_up(self, scope: Scope, generation: int | None = None) -> Fence:
        return await self._turn(scope, generation, up=True)

    async def take_down(self, scope: Scope, generation: int | None = None) -> Fence:
        return await self._turn(scope, generation, up=False)

    async def renew(self, scope: Scope, generation: int | None = None) -> Fence:
        async with self._database.write(scope) as connection:
            await insert_new(connection, schema.fences, [_row(scope)])
            known = true() if generation is None else _FENCES.generation == generation
            this = (_FENCES.scope == scope.key) & _FENCES.up.is_(False) & known
            renewed = update(schema.fences).where(this).values(generation=_FENCES.generation + 2)
            if not (await connection.execute(renewed)).rowcount:
                raise WriteConflict("another generation of the graph")
            await drop_snapshots(connection, scope)
            return await fence_of(connection, scope)

    async def _turn(self, scope: Scope, generation: int | None, *, up: bool) -> Fence:
        async with self._database.write(scope) as connection:
            await insert_new(connection, schema.fences, [_row(scope)])
            # Writers that hold the row are waited for; those that come later find it turned.
            known = true() if generation is None else _FENCES.generation == generation
            this = (_FENCES.scope == scope.key) & (_FENCES.up.is_(not up)) & known
            turned = {"generation": _FENCES.generation + 1, "up": up}
            await connection.execute(update(schema.fences).where(this).values(turned))
            fence = await fence_of(connection, scope)
            # By this call, or by the one before it whose answer was lost.
            ours = generation is None or fence.generation - generation in (0, 1)
            if fence.up is not up or not ours:
                raise WriteConflict("another generation of the graph")
            await drop_snapshots(connection, scope)
            return fence


async def fence_of(connection: AsyncConnection, scope: Scope, *, hold: bool = False) -> Fence:
    """The fence as it stands; `hold` keeps it so until the transaction ends."""
    row = (await connection.execute(_fence(hold=hold), {"in_scope": scope.key})).one_or_none()
    return Fence() if row is None else Fence(row.generation, row.up)


@cache
def _fence(*, hold: bool) -> Select[Any]:
    query = select(_FENCES.generation, _FENCES.up).where(_FENCES.scope == bindparam("in_scope"))
    return query.with_for_update(read=True) if hold else query


async def pass_fence(connection: AsyncConnection, scope: Scope, generation: int | None = None) -> None:
    """Holds the fence of a graph down for the caller's transaction.

    Raises ScopeErased when it is up, or when `generation`, which the caller read, is over.
    """
    if connection.dialect.name == "postgresql" and await _absent(connection, scope):
        # Only a row that is there can be held.
        await insert_new(connection, schema.fences, [_row(scope)])
    fence = await fence_of(connection, scope, hold=True)
    if fence.up or generation not in (None, fence.generation):
        raise ScopeErased


async def _absent(connection: AsyncConnection, scope: Scope) -> bool:
    query = select(_FENCES.scope).where(_FENCES.scope == scope.key)
    return (await connection.execute(query)).one_or_none() is None


def _row(scope: Scope) -> dict[str, object]:
    return {"scope": scope.key, "generation": 0, "up": False}
