"""Archive: which statements lie outside what is searched every day."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, MetaData, String, Table

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0008"
down_revision = "0007"

Key = String().with_variant(String(collation="C"), "postgresql")

metadata = MetaData()

archive = Table(
    "memory_archive",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("statement", Key, primary_key=True),
    Column("archived_at", BigInteger(), nullable=False),
    Column("restored_at", BigInteger(), nullable=False),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {"memory_archive": f"scope = {told('scope')}"})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
