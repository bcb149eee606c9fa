"""What revisions are written with: tables as they were defined then, policies of their rows."""

from collections.abc import Iterable, Mapping

from alembic.operations import Operations
from sqlalchemy import MetaData

POLICY = "whose"


def create_all(op: Operations, metadata: MetaData) -> None:
    """Makes tables with their indexes and comments."""
    for table in metadata.sorted_tables:
        op.impl.create_table(table)


def drop_all(op: Operations, metadata: MetaData) -> None:
    """Drops them, with all that they hold."""
    for table in reversed(metadata.sorted_tables):
        op.impl.drop_table(table)


def on_postgres(op: Operations) -> bool:
    return op.get_context().dialect.name == "postgresql"


def told(setting: str) -> str:
    """SQL for what a transaction was told (services/stores/sql/isolation.py); NULL if it was told nothing.

    In a query of its own, so that PostgreSQL asks once a query and not once a row.
    """
    return f"(SELECT nullif(current_setting('palimpsest.{setting}', true), ''))"


def secure(op: Operations, rows: Mapping[str, str]) -> None:
    """Row-level security on PostgreSQL: of each table only rows that meet its condition are seen or written.

    It binds the tables' owner too. Superusers and roles with BYPASSRLS pass.
    """
    if not on_postgres(op):
        return
    for table, condition in rows.items():
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY {POLICY} ON {table} USING ({condition})")


def unsecure(op: Operations, tables: Iterable[str]) -> None:
    """Takes back `secure`."""
    if not on_postgres(op):
        return
    for table in tables:
        op.execute(f"DROP POLICY {POLICY} ON {table}")
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
