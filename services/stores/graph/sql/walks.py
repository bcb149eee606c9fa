"""The walk: one hop at a time, both directions, newest first, never through a predicate."""

from collections.abc import Collection, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, and_, bindparam, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.graph.port import AsOf, Step, Together, with_groups
from services.stores.graph.sql import schema
from services.stores.graph.sql.conditions import has_span, window
from services.stores.graph.sql.reads import views
from services.stores.graph.steps import beyond, via
from services.stores.sql.rows import Int64, Key
from services.stores.storable import is_storable

NODES_A_QUERY = 8
"""Few enough for a query to be planned quickly, many enough for a frontier of dozens."""


async def walk(
    connection: AsyncConnection,
    scope: Scope,
    seeds: Sequence[EntityId],
    at: AsOf,
    max_hops: int,
    per_level: int,
    together: Together,
) -> list[Step]:
    steps: list[Step] = []
    met: set[StatementId] = set()
    frontier = with_groups(seeds, together)
    visited = set(frontier)
    for hop in range(1, max_hops + 1):
        if not frontier:
            break
        level = await views(
            connection, scope, await _level(connection, scope, frontier, at, met, per_level), at
        )
        steps += [Step(view, hop, via(view, frontier)) for view in level]
        met.update(view.statement.id for view in level)
        frontier = with_groups(beyond(level, visited), together)
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
    before, after = window(at)
    # What was met before may fill the first places: ask for that many more than the cap.
    asked = {
        "in_scope": scope.key,
        "known": at.known_at,
        "before": before,
        "after": after,
        "most": cap + len(met),
    }
    found: set[tuple[int, str]] = set()
    for chunk in in_chunks((node for node in frontier if is_storable(node)), NODES_A_QUERY):
        nodes = {f"node_{place}": node for place, node in zip_longest(range(NODES_A_QUERY), chunk)}
        found.update(
            (created_at, id) for created_at, id in await connection.execute(_newest(), asked | nodes)
        )
    newest = sorted(found, reverse=True)
    return [StatementId(id) for _, id in newest if id not in met][:cap]


@cache
def _newest() -> CompoundSelect[Any]:
    """The newest statements of each of some nodes, in either direction: so a hub costs no more than its cap.

    One query of one shape, so that it is compiled and planned once.
    """
    columns = schema.statements.c
    return union_all(
        *(
            select(_newest_at(column == bindparam(f"node_{place}")).subquery())
            for place in range(NODES_A_QUERY)
            for column in (columns.subject, columns.object)
        )
    )


def _newest_at(of_node: ColumnElement[bool]) -> Select[Any]:
    columns, spans = schema.statements.c, schema.spans.c
    scope, known = bindparam("in_scope", type_=Key), bindparam("known", type_=Int64)
    before, after = bindparam("before", type_=Int64), bindparam("after", type_=Int64)
    held = has_span(
        spans.scope == scope,
        spans.known_from <= known,
        spans.known_to > known,
        spans.valid_at < before,
        spans.invalid_at > after,
    )
    in_hull = and_(columns.hull_from < before, columns.hull_to > after)
    return (
        select(columns.created_at, columns.id)
        .where(columns.scope == scope, of_node, columns.created_at <= known, in_hull, held)
        .order_by(columns.created_at.desc(), columns.id.desc())
        .limit(bindparam("most", type_=Int64))
    )
