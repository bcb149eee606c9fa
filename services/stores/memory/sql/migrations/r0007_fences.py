"""Fences: which graphs are being erased, and which writers came too late."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Boolean, Column, MetaData, String, Table

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0007"
down_revision = "0006"

Key = String().with_variant(String(collation="C"), "postgresql")

metadata = MetaData()

fences = Table(
    "memory_fences",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("generation", BigInteger(), nullable=False),
    Column("up", Boolean, nullable=False),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {"memory_fences": f"scope = {told('scope')}"})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
