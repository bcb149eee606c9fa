"""When a graph is to be looked through for what long ended; NULL: nothing of it is archived."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column

revision = "0010"
down_revision = "0009"


def upgrade(op: Operations) -> None:
    op.add_column(
        "graphs", Column("retention_due_at", BigInteger(), comment="NULL: nothing of it is archived")
    )
    op.create_index("graphs_retention", "graphs", ["retention_due_at"])


def downgrade(op: Operations) -> None:
    op.drop_index("graphs_retention", "graphs")
    op.drop_column("graphs", "retention_due_at")
