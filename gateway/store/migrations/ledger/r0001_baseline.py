"""The ledger as it was before revisions, with the triggers that keep the journal as it was written."""

from alembic.operations import Operations
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from services.stores.sql.revising import create_all, drop_all, on_postgres

revision = "0001"
down_revision = None

Key = String().with_variant(String(collation="C"), "postgresql")
Prose = Text().with_variant(Text(collation="C"), "postgresql")
Int64 = BigInteger()
_Serial = Int64.with_variant(Integer, "sqlite")

# Frozen: what later versions change is in later revisions.
metadata = MetaData()

tenants = Table(
    "tenants",
    metadata,
    Column("id", Key, primary_key=True),
    Column("display_name", Prose, nullable=False),
    Column("state", String, nullable=False),
    Column("limits", Prose, nullable=False),
    Column("created_at", Int64, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Key, primary_key=True),
    Column("tenant", Key, nullable=False, index=True, comment="empty: an operator's"),
    Column("display_name", Prose, nullable=False),
    Column("scopes", String, nullable=False),
    Column("secret_sha256", String(64), nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("expires_at", Int64),
    Column("revoked_at", Int64),
)

graphs = Table(
    "graphs",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("id", Key, primary_key=True),
    Column("settings", LargeBinary, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("updated_at", Int64, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("key", Key, primary_key=True),
    Column("method", String, nullable=False),
    Column("payload_hash", String(64), nullable=False),
    Column("job", Key),
    Column("response", LargeBinary),
    Column("owner", String, nullable=False),
    Column("leased_until", Int64),
    Column("created_at", Int64, nullable=False, index=True),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Key, primary_key=True),
    Column("tenant", Key, nullable=False),
    Column("graph", Key, nullable=False),
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False),
    Column("version", Integer, nullable=False, comment="counts changes of this row"),
    Column("request_key", Key, nullable=False),
    Column("hold", Key, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("started_at", Int64),
    Column("updated_at", Int64, nullable=False),
    Column("finished_at", Int64),
    Column("cancel_requested", Integer, nullable=False),
    Column("result", LargeBinary),
    Column("error", LargeBinary),
    Column("revision", Int64, nullable=False),
    Index("jobs_of_tenant", "tenant", "created_at", "id"),
    Index(
        "jobs_unfinished",
        "tenant",
        "created_at",
        sqlite_where=text("finished_at IS NULL"),
        postgresql_where=text("finished_at IS NULL"),
    ),
)

outbox = Table(
    "outbox",
    metadata,
    Column("job", Key, ForeignKey("jobs.id"), primary_key=True),
    Column("payload", LargeBinary, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("taken_at", Int64, comment="the pipeline has it; absent: still to be handed over"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("account", String, primary_key=True),
    Column("balance", Int64, nullable=False),
    CheckConstraint(
        "account NOT IN ('available', 'held') OR balance >= 0", name="tenant_accounts_never_negative"
    ),
)

journal_groups = Table(
    "journal_groups",
    metadata,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("tenant", Key, nullable=False),
    Column("key", Key, nullable=False, comment="names the movement; makes it happen once"),
    Column("job", Key, nullable=False, comment="empty without one"),
    Column("request_key", Key, nullable=False, comment="empty without one"),
    Column("reason", Prose, nullable=False),
    Column("price_version", String, nullable=False),
    Column("created_at", Int64, nullable=False),
    UniqueConstraint("tenant", "key"),
)

journal_entries = Table(
    "journal_entries",
    metadata,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("group", Int64, ForeignKey("journal_groups.id"), nullable=False, index=True),
    Column("tenant", Key, nullable=False),
    Column("account", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("amount", Int64, nullable=False),
    Column("balance_after", Int64, nullable=False),
    CheckConstraint("amount <> 0", name="an_entry_moves_something"),
    Index("journal_of_tenant", "tenant", "id"),
)

holds = Table(
    "holds",
    metadata,
    Column("id", Key, primary_key=True),
    Column("tenant", Key, nullable=False),
    Column("job", Key, nullable=False, index=True, comment="the hold's own id without a job"),
    Column("request_key", Key, nullable=False),
    Column("state", String, nullable=False),
    Column("ceiling", Int64, nullable=False),
    Column("spent", Int64, nullable=False),
    Column("settled", Int64, nullable=False),
    Column("goodwill", Int64, nullable=False),
    Column("refunded", Int64, nullable=False),
    Column("price_version", String, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("expires_at", Int64, nullable=False),
    Column("ended_at", Int64),
    CheckConstraint("settled <= ceiling", name="settled_within_hold"),
    CheckConstraint("refunded <= settled", name="refunded_within_settled"),
    Index(
        "holds_open",
        "tenant",
        "expires_at",
        sqlite_where=text("ended_at IS NULL"),
        postgresql_where=text("ended_at IS NULL"),
    ),
)

spends = Table(
    "spends",
    metadata,
    Column("job", Key, primary_key=True),
    Column("step", Key, primary_key=True),
    Column("hold", Key, ForeignKey("holds.id"), nullable=False, index=True),
    Column("amount", Int64, nullable=False),
    Column("created_at", Int64, nullable=False),
)

goodwill_days = Table(
    "goodwill_days",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("day", Integer, primary_key=True, comment="days since 1970, UTC"),
    Column("amount", Int64, nullable=False),
)

price_tables = Table(
    "price_tables",
    metadata,
    Column("version", Key, primary_key=True),
    Column("prices", Prose, nullable=False),
    Column("created_at", Int64, nullable=False),
)

_NEVER_CHANGED = ("journal_groups", "journal_entries")


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    for table in _NEVER_CHANGED:
        for deed in ("UPDATE", "DELETE"):
            _refuse(op, table, deed)


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
    if on_postgres(op):
        for table in _NEVER_CHANGED:
            for deed in ("update", "delete"):
                op.execute(f"DROP FUNCTION {table}_no_{deed}()")


def _refuse(op: Operations, table: str, deed: str) -> None:
    """A trigger that keeps the journal as it was written."""
    trigger = f"{table}_no_{deed.lower()}"
    if on_postgres(op):
        op.execute(
            f"CREATE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{table} is never changed'; END $$"
        )
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE {deed} ON {table} FOR EACH ROW EXECUTE FUNCTION {trigger}()"
        )
    else:
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE {deed} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is never changed'); END"
        )
