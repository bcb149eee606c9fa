"""Statements by pairs of nodes: of a slot, or between two entities."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Column, CompoundSelect, Select, and_, bindparam, column, select, union_all
from sqlalchemy import values as rows_of
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import StatementId
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.graph.port import NodePair
from services.stores.graph.sql import schema
from services.stores.sql.rows import Key
from services.stores.storable import is_storable

FEW = 8
"""Pairs that are looked up one by one, in one query that is made once: most often there are one or two."""


async def statements_of_pairs(
    connection: AsyncConnection, scope: Scope, other: Column[str], pairs: Sequence[NodePair]
) -> dict[NodePair, list[StatementId]]:
    """Ids of the statements of each pair of a subject and the node in the column `other`, oldest first."""
    found: dict[NodePair, list[tuple[int, StatementId]]] = defaultdict(list)
    for chunk in in_chunks(pair for pair in pairs if all(map(is_storable, pair))):
        if len(chunk) > FEW:
            rows = await connection.execute(_many(scope, other, chunk))
        else:
            asked = {"in_scope": scope.key}
            for at, pair in enumerate(chunk):
                asked |= {f"subject_{at}": pair[0], f"other_{at}": pair[1]}
            rows = await connection.execute(_few(other, len(chunk)), asked)
        for subject, node, created_at, statement in rows:
            found[subject, node].append((created_at, statement))
    return {pair: [id for _, id in sorted(each)] for pair, each in found.items()}


def _many(scope: Scope, other: Column[str], pairs: Sequence[NodePair]) -> Select[Any]:
    columns = schema.statements.c
    # SQLite looks a row-valued IN up by the scope alone, and an outer join keeps it to this order.
    asked = rows_of(column("subject", Key), column("other", Key), name="asked").data(pairs).cte()
    this = and_(columns.scope == scope.key, columns.subject == asked.c.subject, other == asked.c.other)
    return (
        select(columns.subject, other, columns.created_at, columns.id)
        .select_from(asked)
        .outerjoin(schema.statements, this)
        .where(columns.id.is_not(None))
    )


@cache
def _few(other: Column[str], count: int) -> CompoundSelect[Any]:
    columns = schema.statements.c

    def of(at: int) -> Select[Any]:
        return select(columns.subject, other, columns.created_at, columns.id).where(
            columns.scope == bindparam("in_scope"),
            columns.subject == bindparam(f"subject_{at}"),
            other == bindparam(f"other_{at}"),
        )

    return union_all(*map(of, range(count)))
