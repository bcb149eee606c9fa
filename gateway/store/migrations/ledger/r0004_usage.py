"""What a step understood, in tokens, beside what it cost; the holds of a tenant are found by an index."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column

revision = "0004"
down_revision = "0003"


def upgrade(op: Operations) -> None:
    op.add_column(
        "spends",
        Column("tokens", BigInteger(), comment="of text understood; NULL where that was not counted"),
    )
    op.create_index("holds_of_tenant", "holds", ["tenant", "created_at"])


def downgrade(op: Operations) -> None:
    op.drop_index("holds_of_tenant", "holds")
    op.drop_column("spends", "tokens")
