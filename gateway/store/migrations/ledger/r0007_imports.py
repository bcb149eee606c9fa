"""Imported graphs: whence their ids follow, which import made them, and whether it is at it still."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, String

revision = "0007"
down_revision = "0006"

Key = String().with_variant(String(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    op.add_column("graphs", Column("origin", String(16), comment="of an imported one: whence its ids follow"))
    op.add_column("graphs", Column("import_hash", String(64), comment="which import made it"))
    op.add_column("graphs", Column("import_owner", Key, comment="who is making it; absent: it is there"))
    op.add_column("graphs", Column("import_leased_until", BigInteger()))


def downgrade(op: Operations) -> None:
    for name in ("import_leased_until", "import_owner", "import_hash", "origin"):
        op.drop_column("graphs", name)
