"""Runs of jobs: whose run counts, which attempt it is, what a retry needs; and processes that run them."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, String, Table

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0008"
down_revision = "0007"

Key = String().with_variant(String(collation="C"), "postgresql")
Int64 = BigInteger()

metadata = MetaData()

executors = Table(
    "executors",
    metadata,
    Column("id", Key, primary_key=True),
    Column("instance", String, nullable=False, comment="of one start of the process"),
    Column("started_at", Int64, nullable=False),
    Column("seen_at", Int64, nullable=False),
    Column("stopped_at", Int64),
)


def upgrade(op: Operations) -> None:
    op.add_column("jobs", Column("epoch", Integer, comment="of the run that counts; NULL is 0"))
    op.add_column("jobs", Column("attempt", Integer, comment="how many retries there were; NULL is 0"))
    op.add_column(
        "jobs", Column("unfinished_work", LargeBinary, comment="what a retry would do; ids and numbers")
    )
    create_all(op, metadata)
    secure(op, {"executors": f"{told('across')} IS NOT NULL"})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
    for name in ("unfinished_work", "attempt", "epoch"):
        op.drop_column("jobs", name)
