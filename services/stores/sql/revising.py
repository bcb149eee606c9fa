"""What revisions are written with: tables made and dropped as they were defined at that time."""

from alembic.operations import Operations
from sqlalchemy import MetaData


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
