"""The walk: one hop at a time, both directions, newest first, never through a predicate."""

from collections.abc import Collection, Sequence

from sqlalchemy import Column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.graph import EntityType
from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope
from services.stores.graph.port import AsOf, StatementView, Step
from services.stores.graph.sql import schema
from services.stores.graph.sql.conditions import id_chunks, visible
from services.stores.graph.sql.reads import views


async def walk(
    connection: AsyncConnection,
    scope: Scope,
    seeds: Sequence[EntityId],
    at: AsOf,
    max_hops: int,
    per_level: int,
) -> list[Step]:
    steps: list[Step] = []
    met: set[StatementId] = set()
    visited: set[EntityId] = set(seeds)
    frontier: set[EntityId] = set(seeds)
    for hop in range(1, max_hops + 1):
        if not frontier:
            break
        level = await views(
            connection, scope, await _level(connection, scope, frontier, at, met, per_level), at
        )
        steps += [Step(view, hop, _via(view, frontier)) for view in level]
        met.update(view.statement.id for view in level)
        frontier = _beyond(level, visited)
        visited |= frontier
    return steps


async def _level(
    connection: AsyncConnection,
    scope: Scope,
    frontier: Collection[EntityId],
    at: AsOf,
    met: Collection[StatementId],
    cap: int,
) -> list[StatementId]:
    """The newest statements with a node in the frontier that were not met before, newest first."""
    columns = schema.statements.c
    found: set[tuple[int, str]] = set()
    # Sorted, so that equal walks send equal queries.
    for chunk in id_chunks(sorted(frontier)):
        for node in (columns.subject, columns.object):
            # What was met before may fill the first places: ask for that many more than the cap.
            found.update(await _newest(connection, scope, node, chunk, at, cap + len(met)))
    newest = sorted(found, reverse=True)
    return [StatementId(id) for _, id in newest if id not in met][:cap]


async def _newest(
    connection: AsyncConnection,
    scope: Scope,
    node: Column[str],
    ids: Sequence[EntityId],
    at: AsOf,
    limit: int,
) -> list[tuple[int, str]]:
    columns = schema.statements.c
    query = (
        select(columns.created_at, columns.id)
        .where(node.in_(ids), visible(scope, at))
        .order_by(columns.created_at.desc(), columns.id.desc())
        .limit(limit)
    )
    return [(created_at, id) for created_at, id in await connection.execute(query)]


def _via(view: StatementView, frontier: Collection[EntityId]) -> EntityId:
    if view.subject.id in frontier or view.object is None:
        return view.subject.id
    return view.object.id


def _beyond(level: Sequence[StatementView], visited: Collection[EntityId]) -> set[EntityId]:
    ends = [node for view in level for node in (view.subject, view.object) if node is not None]
    return {node.id for node in ends if node.type is not EntityType.PREDICATE and node.id not in visited}
