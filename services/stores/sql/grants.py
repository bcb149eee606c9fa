"""What the role that servers connect as may do with the tables of a store: use them, never change them."""

from collections.abc import Iterator

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from services.stores.errors import SchemaUnusable
from services.stores.sql.database import Database
from services.stores.sql.isolation import Nobody
from services.stores.sql.migrations import Schema, told_why


class RoleUnknown(SchemaUnusable):
    """The database has no role of this name."""

    def __init__(self, component: str, role: str) -> None:
        super().__init__(component, f"the {component} store's database has no role {role!r}")


async def grant(engine: AsyncEngine, schema: Schema, role: str) -> None:
    """Lets a role of PostgreSQL use a store's tables. Idempotent; nothing to do on SQLite.

    Raises OwnerNeeded, RoleUnknown.
    """
    async with Database(engine, schema.component).write(Nobody()) as connection:
        with told_why(schema.component):
            if engine.dialect.name == "postgresql":
                known = text("SELECT count(*) FROM pg_roles WHERE rolname = :role")
                if not await connection.scalar(known, {"role": role}):
                    raise RoleUnknown(schema.component, role)
            for statement in _statements(engine, schema, role):
                await connection.execute(text(statement))


def grant_sql(engine: AsyncEngine, schema: Schema, role: str) -> str:
    """The SQL that `grant` would send."""
    return "".join(f"{statement};\n" for statement in _statements(engine, schema, role))


def _statements(engine: AsyncEngine, schema: Schema, role: str) -> Iterator[str]:
    if engine.dialect.name != "postgresql":
        return
    quoted = engine.dialect.identifier_preparer.quote_identifier(role)
    for table in schema.metadata.sorted_tables:
        yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table.name} TO {quoted}"
        numbered = table.autoincrement_column
        if numbered is not None and numbered.autoincrement is True:
            yield f"GRANT USAGE ON SEQUENCE {table.name}_{numbered.name}_seq TO {quoted}"
    yield f"GRANT SELECT ON {schema.version_table} TO {quoted}"
