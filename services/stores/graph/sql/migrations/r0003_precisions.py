"""How fine the borders of a span are known; NULL in the rows that are there."""

from alembic.operations import Operations
from sqlalchemy import Boolean, Column, SmallInteger

revision = "0003"
down_revision = "0002"

_COLUMNS = {"start_precision": SmallInteger, "end_precision": SmallInteger, "assumed": Boolean}


def upgrade(op: Operations) -> None:
    for name, kind in _COLUMNS.items():
        op.add_column("graph_spans", Column(name, kind))


def downgrade(op: Operations) -> None:
    for name in reversed(_COLUMNS):
        op.drop_column("graph_spans", name)
