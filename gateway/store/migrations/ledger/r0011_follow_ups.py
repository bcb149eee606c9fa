"""Graphs whose labels, summaries and persona are to be made."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0011"
down_revision = "0010"

Key = String().with_variant(String(collation="C"), "postgresql")

metadata = MetaData()

follow_ups = Table(
    "follow_ups",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("graph", Key, primary_key=True),
    Column("wanted", BigInteger(), nullable=False, comment="how often the graph changed"),
    Column("first_at", BigInteger(), nullable=False, index=True),
    Column("last_at", BigInteger(), nullable=False),
    Column("not_before", BigInteger(), nullable=False, comment="after a failure"),
    Column("owner", Key, nullable=False),
    Column("leased_until", BigInteger(), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("job", Key, nullable=False, comment="the latest that changed it; empty: a call did"),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {"follow_ups": f"tenant = {told('tenant')} OR {told('across')} IS NOT NULL"})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
