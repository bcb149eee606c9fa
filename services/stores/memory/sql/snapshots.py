"""Snapshots as rows: see services/stores/memory/snapshots.py.

Each keeping has an id of its own, which its parts carry. So parts are written before anything is held:
whoever removes text waits for the few statements that follow, and not for megabytes.
"""

from functools import cache
from typing import Any
from uuid import uuid4

from sqlalchemy import Delete, Select, and_, bindparam, delete, false, func, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.errors import ScopeErased
from services.stores.memory.snapshots import Mark, Snapshot, SnapshotKind
from services.stores.memory.sql import schema
from services.stores.memory.sql.dropping import drop_snapshots
from services.stores.memory.sql.fences import pass_fence
from services.stores.sql.database import Database
from services.stores.sql.rows import Key, insert_new, insert_or_update

_HEADS, _PARTS = schema.snapshots.c, schema.snapshot_parts.c
_DROPS, _FENCES = schema.snapshot_drops.c, schema.fences.c
_HEAD = ("keeping", "generation", "layout", "taken_at", "parts")


class _Over(Exception):
    """The mark is over: what was written goes with the transaction."""


class SqlSnapshotStore:
    """SnapshotStore over the tables of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark(self, scope: Scope) -> Mark:
        async with self._database.read(scope) as connection:
            generation, drops = (await connection.execute(_mark(), {"in_scope": scope.key})).one()
        return Mark(generation or 0, drops or 0)

    async def keep(self, scope: Scope, kind: SnapshotKind, mark: Mark, snapshot: Snapshot) -> bool:
        """See the port. On SQLite other writers wait for all of it, as they do for any write."""
        if await self.mark(scope) != mark:
            return False
        try:
            async with self._database.write(scope) as connection:
                await _keep(connection, scope, kind, mark, snapshot)
        except _Over:
            return False
        return True

    async def kept(self, scope: Scope, kind: SnapshotKind, layout: str) -> Snapshot | None:
        """See the port. Parts are read one by one, of one state of the database."""
        asked = {"in_scope": scope.key, "kind": kind.value, "layout": layout}
        async with self._database.read(scope) as connection:
            head = (await connection.execute(_head(), asked)).one_or_none()
            if head is None:
                return None
            this = {"in_scope": scope.key, "keeping": head.keeping}
            parts: list[bytes] = []
            for number in range(head.parts):
                found = await connection.execute(_part(), {**this, "number": number})
                parts.append(found.scalar_one())
        return Snapshot(layout, Instant(head.taken_at), parts)

    async def taken_at(self, scope: Scope, kind: SnapshotKind, layout: str) -> Instant | None:
        asked = {"in_scope": scope.key, "kind": kind.value, "layout": layout}
        async with self._database.read(scope) as connection:
            head = (await connection.execute(_head(), asked)).one_or_none()
        return None if head is None else Instant(head.taken_at)

    async def drop(self, scope: Scope) -> None:
        async with self._database.write(scope) as connection:
            await drop_snapshots(connection, scope)


async def count_snapshots(connection: AsyncConnection, scope: Scope) -> int:
    """How many there is anything of: each counts once, whatever its size."""
    of_heads, of_parts = (
        select(table.c.keeping).where(table.c.scope == scope.key)
        for table in (schema.snapshots, schema.snapshot_parts)
    )
    either = union(of_heads, of_parts).subquery()
    return (await connection.execute(select(func.count()).select_from(either))).scalar_one()


async def _keep(
    connection: AsyncConnection, scope: Scope, kind: SnapshotKind, mark: Mark, snapshot: Snapshot
) -> None:
    """Raises _Over, also where a drop came while the parts were written."""
    keeping = uuid4().hex
    for number, payload in enumerate(snapshot.parts):
        part = {"scope": scope.key, "keeping": keeping, "number": number, "payload": payload}
        await insert_new(connection, schema.snapshot_parts, [part])
    if not await _holds(connection, scope, mark):
        raise _Over
    row = {
        "scope": scope.key,
        "kind": kind.value,
        "keeping": keeping,
        "generation": mark.generation,
        "layout": snapshot.layout,
        "taken_at": snapshot.taken_at,
        "parts": len(snapshot.parts),
    }
    # Of two that keep at once the later waits here, and then removes what the first has kept.
    await insert_or_update(connection, schema.snapshots, [row], _HEAD)
    await connection.execute(_replaced(), {"in_scope": scope.key, "keeping": keeping})


async def _holds(connection: AsyncConnection, scope: Scope, mark: Mark) -> bool:
    """Whether a mark is not over; from here to the end of the transaction it stays so."""
    try:
        await pass_fence(connection, scope, mark.generation)
    except ScopeErased:
        return False
    # Only a row that is there can be held.
    await insert_new(connection, schema.snapshot_drops, [{"scope": scope.key, "drops": 0}])
    held = select(_DROPS.drops).where(_DROPS.scope == scope.key).with_for_update(read=True)
    return bool((await connection.execute(held)).scalar_one() == mark.dropped)


@cache
def _mark() -> Select[Any]:
    """Both at one moment, in one row; NULL where nothing is told yet."""
    this = bindparam("in_scope", type_=Key)
    generation = select(_FENCES.generation).where(_FENCES.scope == this)
    drops = select(_DROPS.drops).where(_DROPS.scope == this)
    return select(generation.scalar_subquery(), drops.scalar_subquery())


@cache
def _head() -> Select[Any]:
    """Of a kind and a layout, unless the graph is erased or of another generation by now."""
    fenced = schema.snapshots.outerjoin(schema.fences, _FENCES.scope == _HEADS.scope)
    this = and_(
        _HEADS.scope == bindparam("in_scope"),
        _HEADS.kind == bindparam("kind"),
        _HEADS.layout == bindparam("layout"),
    )
    stands = and_(
        func.coalesce(_FENCES.generation, 0) == _HEADS.generation,
        func.coalesce(_FENCES.up, false()).is_(False),
    )
    return select(_HEADS.keeping, _HEADS.taken_at, _HEADS.parts).select_from(fenced).where(this, stands)


@cache
def _part() -> Select[Any]:
    return select(_PARTS.payload).where(
        _PARTS.scope == bindparam("in_scope"),
        _PARTS.keeping == bindparam("keeping"),
        _PARTS.number == bindparam("number"),
    )


@cache
def _replaced() -> Delete:
    """Parts of a graph that are no snapshot's any more. Those that others are writing are not seen yet."""
    here = _PARTS.scope == bindparam("in_scope")
    heads = select(_HEADS.keeping).where(_HEADS.scope == bindparam("in_scope"))
    return delete(schema.snapshot_parts).where(
        here, _PARTS.keeping != bindparam("keeping"), _PARTS.keeping.not_in(heads)
    )
