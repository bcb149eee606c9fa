"""The log of calls that changed something."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, Text

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0003"
down_revision = "0002"

Key = String().with_variant(String(collation="C"), "postgresql")
Prose = Text().with_variant(Text(collation="C"), "postgresql")
Int64 = BigInteger()

metadata = MetaData()

calls = Table(
    "calls",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("id", Key, primary_key=True),
    Column("at", Int64, nullable=False),
    Column("action", String, nullable=False, comment="the RPC"),
    Column("graph", Key, nullable=False, comment="empty without one"),
    Column("key", Key, nullable=False, comment="id of the API key"),
    Column("operator", Integer, nullable=False),
    Column("targets", Prose, nullable=False, comment="ids as a JSON list"),
    Column("request", Key, nullable=False),
    Column("revision", Int64, nullable=False),
    Column("reason", Prose, nullable=False, comment="of an operator's call alone"),
    Index("calls_newest", "tenant", "at", "id"),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {"calls": f"tenant = {told('tenant')} OR {told('across')} IS NOT NULL"})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
