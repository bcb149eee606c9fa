"""Text changes: how often a graph's texts changed, counted by who changes them and not at every question."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, MetaData, String, Table

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0011"
down_revision = "0010"

Key = String().with_variant(String(collation="C"), "postgresql")

metadata = MetaData()

text_changes = Table(
    "memory_text_changes",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("changes", BigInteger(), nullable=False),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {"memory_text_changes": f"scope = {told('scope')}"})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
