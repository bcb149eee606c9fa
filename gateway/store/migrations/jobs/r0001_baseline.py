"""The progress of jobs as it was before revisions."""

from alembic.operations import Operations
from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from services.stores.sql.revising import create_all, drop_all

revision = "0001"
down_revision = None

Key = String().with_variant(String(collation="C"), "postgresql")
Prose = Text().with_variant(Text(collation="C"), "postgresql")
Int64 = BigInteger()

# Frozen: what later versions change is in later revisions.
metadata = MetaData()

job_progress = Table(
    "job_progress",
    metadata,
    Column("job", Key, primary_key=True),
    Column("last_event", Integer, nullable=False),
)

job_chunks = Table(
    "job_chunks",
    metadata,
    Column("job", Key, primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("stage", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

job_events = Table(
    "job_events",
    metadata,
    Column("job", Key, primary_key=True),
    Column("number", Integer, primary_key=True, comment="from 1, without gaps"),
    Column("chunk", LargeBinary, nullable=False),
    Column("created_at", Int64, nullable=False, index=True),
)

job_receipts = Table(
    "job_receipts",
    metadata,
    Column("job", Key, primary_key=True),
    Column("step", Key, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("engine", String, nullable=False),
    Column("receipts", LargeBinary, nullable=False),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("job", Key, primary_key=True),
    Column("chunk", Integer, primary_key=True),
    Column("stage", Key, primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("created_at", Int64, nullable=False),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
