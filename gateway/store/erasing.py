"""What is being erased, as every call on a graph asks it in its own transaction."""

from typing import Any

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors import EntityBeingErased, GraphBeingErased
from gateway.store.tables import erasures
from services.domain.scope import Scope


async def refuse_erased(connection: AsyncConnection, scope: Scope, *, writing: bool) -> None:
    """Raises GraphBeingErased, and for who is about to write EntityBeingErased."""
    found = set((await connection.execute(open_erasures(scope))).scalars())
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


def open_erasures(scope: Scope) -> Select[Any]:
    """What is being erased of a graph: "" for all of it."""
    return select(erasures.c.entity).where(
        erasures.c.tenant == scope.tenant,
        erasures.c.graph.in_([scope.graph, ""]),
        erasures.c.finished_at.is_(None),
    )
