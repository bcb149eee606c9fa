"""What is being erased, as every call on a graph asks it in its own transaction."""

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors import EntityBeingErased, GraphBeingErased
from gateway.store.clock import SECOND, DatabaseClock
from gateway.store.tables import erasures
from services.domain.scope import Scope

KEYS_BELIEVED = 30 * SECOND
"""How long a revoked key may work somewhere (gateway/keys.py)."""


async def refuse_erased(
    connection: AsyncConnection, clock: DatabaseClock, scope: Scope, *, writing: bool
) -> None:
    """Raises GraphBeingErased, and for who is about to write EntityBeingErased."""
    found = set((await connection.execute(open_erasures(clock, scope))).scalars())
    if "" in found:
        raise GraphBeingErased(scope.graph)
    if found and writing:
        raise EntityBeingErased(scope.graph)


def being_erased(tenant: ColumnElement[str], graph: ColumnElement[str]) -> ColumnElement[bool]:
    """Of a row with these columns: its graph, or its tenant, is being erased as a whole."""
    return (
        select(erasures.c.id)
        .where(
            erasures.c.tenant == tenant,
            or_(erasures.c.graph == graph, erasures.c.graph == ""),
            erasures.c.entity == "",
            erasures.c.finished_at.is_(None),
        )
        .exists()
    )


def refuses_reads(
    clock: DatabaseClock, tenant: ColumnElement[str], graph: ColumnElement[str]
) -> ColumnElement[bool]:
    """Of a row with these columns: whether `refuse_erased` refuses who reads its graph."""
    return (
        select(erasures.c.id)
        .where(
            erasures.c.tenant == tenant,
            or_(erasures.c.graph == graph, erasures.c.graph == ""),
            erasures.c.entity == "",
            _is_open(clock),
        )
        .exists()
    )


def open_erasures(clock: DatabaseClock, scope: Scope) -> Select[Any]:
    """What is being erased of a graph: "" for all of it."""
    return select(erasures.c.entity).where(
        erasures.c.tenant == scope.tenant,
        erasures.c.graph.in_([scope.graph, ""]),
        _is_open(clock),
    )


def _is_open(clock: DatabaseClock) -> ColumnElement[bool]:
    return or_(
        erasures.c.finished_at.is_(None),
        # Some gateway may still believe a key that was revoked when the erasure began.
        and_(erasures.c.graph == "", erasures.c.finished_at > clock.now() - KEYS_BELIEVED),
    )
