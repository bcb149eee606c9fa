"""Texts that are held back for review: which episodes, and with them which passages. NULL is none."""

from alembic.operations import Operations
from sqlalchemy import Boolean, Column

revision = "0010"
down_revision = "0009"

_TABLES = ("memory_episodes", "memory_passages")


def upgrade(op: Operations) -> None:
    for table in _TABLES:
        op.add_column(table, Column("held", Boolean()))


def downgrade(op: Operations) -> None:
    for table in _TABLES:
        op.drop_column(table, "held")
