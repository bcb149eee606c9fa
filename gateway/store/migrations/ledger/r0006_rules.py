"""Ingestion rules: what a tenant says of the texts of a source."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Double, MetaData, String, Table, Text

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0006"
down_revision = "0005"

metadata = MetaData()

_KEY = String().with_variant(String(collation="C"), "postgresql")
_PROSE = Text().with_variant(Text(collation="C"), "postgresql")

ingestion_rules = Table(
    "ingestion_rules",
    metadata,
    Column("tenant", _KEY, primary_key=True),
    Column("graph", _KEY, primary_key=True, comment="empty: every graph of the tenant"),
    Column("source", _KEY, primary_key=True),
    Column("trust", Double, comment="0 to 1; NULL where it is not said"),
    Column("instructions", _PROSE, nullable=False),
    Column("updated_at", BigInteger(), nullable=False),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {"ingestion_rules": f"tenant = {told('tenant')} OR {told('across')} IS NOT NULL"})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
