"""Erasing in the graph's tables: a whole scope, or statements and entities with all that is of them."""

from collections.abc import Mapping, Sequence

from sqlalchemy import delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope
from services.stores.graph.sql import schema
from services.stores.graph.sql.conditions import id_chunks

_OF_STATEMENT = (schema.spans, schema.claims, schema.ends, schema.denials, schema.revocations)


async def erase(connection: AsyncConnection, scope: Scope) -> None:
    """Deletes every row of a scope."""
    for table in reversed(schema.metadata.sorted_tables):
        await connection.execute(delete(table).where(table.c.scope == scope.key))


async def rows(connection: AsyncConnection, scope: Scope) -> Mapping[str, int]:
    """Rows of a scope by kind; kinds without any are left out."""
    found: dict[str, int] = {}
    for table in schema.metadata.sorted_tables:
        query = select(func.count()).select_from(table).where(table.c.scope == scope.key)
        found[table.name.removeprefix("graph_")] = (await connection.execute(query)).scalar_one()
    return {kind: count for kind, count in found.items() if count}


async def purge(
    connection: AsyncConnection, scope: Scope, statements: Sequence[StatementId], entities: Sequence[EntityId]
) -> None:
    """Deletes statements with all records and spans, verdicts on either side, and entities with aliases."""
    for chunk in id_chunks(statements):
        await _purge_verdicts(connection, scope, chunk)
        for table in _OF_STATEMENT:
            these = table.c.statement.in_(chunk)
            await connection.execute(delete(table).where(table.c.scope == scope.key, these))
        mine = schema.statements.c.id.in_(chunk)
        await connection.execute(
            delete(schema.statements).where(schema.statements.c.scope == scope.key, mine)
        )
    for nodes in id_chunks(entities):
        for table, column in ((schema.aliases, "entity"), (schema.entities, "id")):
            these = table.c[column].in_(nodes)
            await connection.execute(delete(table).where(table.c.scope == scope.key, these))


async def _purge_verdicts(connection: AsyncConnection, scope: Scope, statements: Sequence[str]) -> None:
    """With their revocations, which hang on the left statement."""
    verdicts, revocations = schema.verdicts.c, schema.revocations.c
    either = or_(verdicts.left.in_(statements), verdicts.right.in_(statements))
    query = select(verdicts.id).where(verdicts.scope == scope.key, either)
    for chunk in id_chunks((await connection.execute(query)).scalars().all()):
        await connection.execute(
            delete(schema.revocations).where(revocations.scope == scope.key, revocations.record.in_(chunk))
        )
        await connection.execute(
            delete(schema.verdicts).where(verdicts.scope == scope.key, verdicts.id.in_(chunk))
        )
