"""How many bytes of text a tenant sent on each day."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0005"
down_revision = "0004"

metadata = MetaData()

text_days = Table(
    "text_days",
    metadata,
    Column("tenant", String().with_variant(String(collation="C"), "postgresql"), primary_key=True),
    Column("day", Integer, primary_key=True, comment="days since 1970, UTC"),
    Column("bytes", BigInteger(), nullable=False, comment="of text and assertions accepted"),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {"text_days": f"tenant = {told('tenant')} OR {told('across')} IS NOT NULL"})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
