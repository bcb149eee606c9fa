"""Decisions on pairs, the calls that asked for them, and a way to them by time."""

from alembic.operations import Operations
from sqlalchemy import Column, String

revision = "0004"
down_revision = "0003"

_TABLE = "memory_decisions"
_INDEXES = {
    "memory_decisions_clock": ["scope", "at", "id"],
    "memory_decisions_other": ["scope", "other"],
}

Key = String().with_variant(String(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    for name in ("other", "request"):
        op.add_column(_TABLE, Column(name, Key))
    for name, columns in _INDEXES.items():
        op.create_index(name, _TABLE, columns)


def downgrade(op: Operations) -> None:
    for name in _INDEXES:
        op.drop_index(name, _TABLE)
    for name in ("request", "other"):
        op.drop_column(_TABLE, name)
