"""Snapshots: what a reader holds in memory of a graph, kept for the next one; how often they went."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, String, Table

from services.stores.sql.revising import create_all, drop_all, on_postgres, secure, told

revision = "0012"
down_revision = "0011"

Key = String().with_variant(String(collation="C"), "postgresql")

metadata = MetaData()

snapshots = Table(
    "memory_snapshots",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("kind", Key, primary_key=True),
    Column("keeping", Key, nullable=False),
    Column("generation", BigInteger(), nullable=False),
    Column("layout", Key, nullable=False),
    Column("taken_at", BigInteger(), nullable=False),
    Column("parts", Integer, nullable=False),
)

snapshot_parts = Table(
    "memory_snapshot_parts",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("keeping", Key, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)

snapshot_drops = Table(
    "memory_snapshot_drops",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("drops", BigInteger(), nullable=False),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    if on_postgres(op):
        # Whoever keeps it packs it as it pays; the server's own packing takes five times as long as to write.
        op.execute("ALTER TABLE memory_snapshot_parts ALTER COLUMN payload SET STORAGE EXTERNAL")
    secure(op, {table: f"scope = {told('scope')}" for table in metadata.tables})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
