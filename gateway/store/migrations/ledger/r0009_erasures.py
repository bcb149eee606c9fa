"""Erasures; which graph a request named; and a journal whose rows may lose their content, nothing else."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, String, Table

from services.stores.sql.revising import create_all, drop_all, on_postgres, secure, told

revision = "0009"
down_revision = "0008"

Key = String().with_variant(String(collation="C"), "postgresql")

metadata = MetaData()

erasures = Table(
    "erasures",
    metadata,
    Column("id", Key, primary_key=True, comment="also its job's"),
    Column("tenant", Key, nullable=False),
    Column("graph", Key, nullable=False, comment="empty: the whole tenant"),
    Column("entity", Key, nullable=False, comment="empty: the whole graph"),
    Column("state", String, nullable=False),
    Column("created_at", BigInteger(), nullable=False),
    Column("finished_at", BigInteger()),
    Column("reports", LargeBinary, nullable=False),
    Index("erasures_of_graph", "tenant", "graph", "finished_at"),
)

_TRIGGER = "journal_groups_no_update"
_REFUSED = "journal_groups is never changed"
_KEPT = ("id", "tenant", "key", "job", "price_version", "created_at")
_EMPTIED = ("request_key", "reason")


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {"erasures": f"tenant = {told('tenant')} OR {told('across')} IS NOT NULL"})
    op.add_column("requests", Column("graph", Key, comment="NULL: made before this was kept"))
    _may_be_emptied(op)


def downgrade(op: Operations) -> None:
    if on_postgres(op):
        op.execute(
            f"CREATE OR REPLACE FUNCTION {_TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_REFUSED}'; END $$"
        )
    else:
        op.execute(f"DROP TRIGGER {_TRIGGER}")
        op.execute(
            f"CREATE TRIGGER {_TRIGGER} BEFORE UPDATE ON journal_groups "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
        )
    op.drop_column("requests", "graph")
    drop_all(op, metadata)


def _may_be_emptied(op: Operations) -> None:
    same = "IS NOT DISTINCT FROM" if on_postgres(op) else "IS"
    kept = [f'NEW."{name}" {same} OLD."{name}"' for name in _KEPT]
    kept += [f'NEW."{name}" IN (\'\', OLD."{name}")' for name in _EMPTIED]
    allowed = " AND ".join(kept)
    if on_postgres(op):
        op.execute(
            f"CREATE OR REPLACE FUNCTION {_TRIGGER}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN IF {allowed} THEN RETURN NEW; END IF; RAISE EXCEPTION '{_REFUSED}'; END $$"
        )
    else:
        op.execute(f"DROP TRIGGER {_TRIGGER}")
        op.execute(
            f"CREATE TRIGGER {_TRIGGER} BEFORE UPDATE ON journal_groups WHEN NOT ({allowed}) "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
        )
