"""The gateway's tables. LEDGER holds what must change in one transaction; PROGRESS what changes often.

On SQLite these are two files, ledger.db and jobs.db, so that frequent small writes don't wait for the
ledger's; on PostgreSQL they may share a database (docs/adr/0006-accept-in-one-transaction.md).
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)

from services.stores.sql.rows import Int64, Key, Prose

LEDGER = MetaData()
PROGRESS = MetaData()

# SQLite numbers rows by itself only in an INTEGER key.
_Serial = Int64.with_variant(Integer, "sqlite")

tenants = Table(
    "tenants",
    LEDGER,
    Column("id", Key, primary_key=True),
    Column("display_name", Prose, nullable=False),
    Column("state", String, nullable=False),
    Column("limits", Prose, nullable=False),
    Column("created_at", Int64, nullable=False),
)

api_keys = Table(
    "api_keys",
    LEDGER,
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
    LEDGER,
    Column("tenant", Key, primary_key=True),
    Column("id", Key, primary_key=True),
    Column("settings", LargeBinary, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("updated_at", Int64, nullable=False),
    Column("origin", String(16), comment="of an imported one: whence its ids follow"),
    Column("import_hash", String(64), comment="which import made it"),
    Column("import_owner", Key, comment="who is making it; absent: it is there"),
    Column("import_leased_until", Int64),
    Column("retention_due_at", Int64, comment="NULL: nothing of it is archived"),
    Index("graphs_retention", "retention_due_at"),
)

requests = Table(
    "requests",
    LEDGER,
    Column("tenant", Key, primary_key=True),
    Column("key", Key, primary_key=True),
    Column("method", String, nullable=False),
    Column("payload_hash", String(64), nullable=False),
    Column("job", Key),
    Column("response", LargeBinary),
    Column("owner", String, nullable=False),
    Column("leased_until", Int64),
    Column("created_at", Int64, nullable=False, index=True),
    Column("graph", Key, comment="NULL: made before this was kept"),
)

erasures = Table(
    "erasures",
    LEDGER,
    Column("id", Key, primary_key=True, comment="also its job's"),
    Column("tenant", Key, nullable=False),
    Column("graph", Key, nullable=False, comment="empty: the whole tenant"),
    Column("entity", Key, nullable=False, comment="empty: the whole graph"),
    Column("state", String, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("finished_at", Int64),
    Column("reports", LargeBinary, nullable=False),
    Index("erasures_of_graph", "tenant", "graph", "finished_at"),
)

calls = Table(
    "calls",
    LEDGER,
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

jobs = Table(
    "jobs",
    LEDGER,
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
    Column("epoch", Integer, comment="of the run that counts; NULL is 0"),
    Column("attempt", Integer, comment="how many retries there were; NULL is 0"),
    Column("unfinished_work", LargeBinary, comment="what a retry would do; ids and numbers"),
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
    LEDGER,
    Column("job", Key, ForeignKey("jobs.id"), primary_key=True),
    Column("payload", LargeBinary, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("taken_at", Int64, comment="the pipeline has it; absent: still to be handed over"),
)

executors = Table(
    "executors",
    LEDGER,
    Column("id", Key, primary_key=True),
    Column("instance", String, nullable=False, comment="of one start of the process"),
    Column("started_at", Int64, nullable=False),
    Column("seen_at", Int64, nullable=False),
    Column("stopped_at", Int64),
)

accounts = Table(
    "accounts",
    LEDGER,
    Column("tenant", Key, primary_key=True),
    Column("account", String, primary_key=True),
    Column("balance", Int64, nullable=False),
    CheckConstraint(
        "account NOT IN ('available', 'held') OR balance >= 0", name="tenant_accounts_never_negative"
    ),
)

journal_groups = Table(
    "journal_groups",
    LEDGER,
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
    LEDGER,
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
    LEDGER,
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
    Index("holds_of_tenant", "tenant", "created_at"),
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
    LEDGER,
    Column("job", Key, primary_key=True),
    Column("step", Key, primary_key=True),
    Column("hold", Key, ForeignKey("holds.id"), nullable=False, index=True),
    Column("amount", Int64, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("tokens", Int64, comment="of text understood; NULL where that was not counted"),
)

goodwill_days = Table(
    "goodwill_days",
    LEDGER,
    Column("tenant", Key, primary_key=True),
    Column("day", Integer, primary_key=True, comment="days since 1970, UTC"),
    Column("amount", Int64, nullable=False),
)

follow_ups = Table(
    "follow_ups",
    LEDGER,
    Column("tenant", Key, primary_key=True),
    Column("graph", Key, primary_key=True),
    Column("wanted", Int64, nullable=False, comment="how often the graph changed"),
    Column("first_at", Int64, nullable=False, index=True),
    Column("last_at", Int64, nullable=False),
    Column("not_before", Int64, nullable=False, comment="after a failure"),
    Column("owner", Key, nullable=False),
    Column("leased_until", Int64, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("job", Key, nullable=False, comment="the latest that changed it; empty: a call did"),
)

text_days = Table(
    "text_days",
    LEDGER,
    Column("tenant", Key, primary_key=True),
    Column("day", Integer, primary_key=True, comment="days since 1970, UTC"),
    Column("bytes", Int64, nullable=False, comment="of text and assertions accepted"),
)

ingestion_rules = Table(
    "ingestion_rules",
    LEDGER,
    Column("tenant", Key, primary_key=True),
    Column("graph", Key, primary_key=True, comment="empty: every graph of the tenant"),
    Column("source", Key, primary_key=True),
    Column("trust", Double, comment="0 to 1; NULL where it is not said"),
    Column("instructions", Prose, nullable=False),
    Column("updated_at", Int64, nullable=False),
)

price_tables = Table(
    "price_tables",
    LEDGER,
    Column("version", Key, primary_key=True),
    Column("prices", Prose, nullable=False),
    Column("created_at", Int64, nullable=False),
)

job_progress = Table(
    "job_progress",
    PROGRESS,
    Column("job", Key, primary_key=True),
    Column("last_event", Integer, nullable=False),
    Column("epoch", Integer, comment="of the run that may write; NULL is 0"),
)

job_chunks = Table(
    "job_chunks",
    PROGRESS,
    Column("job", Key, primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("stage", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

job_events = Table(
    "job_events",
    PROGRESS,
    Column("job", Key, primary_key=True),
    Column("number", Integer, primary_key=True, comment="from 1, without gaps"),
    Column("chunk", LargeBinary, nullable=False),
    Column("created_at", Int64, nullable=False, index=True),
)

job_receipts = Table(
    "job_receipts",
    PROGRESS,
    Column("job", Key, primary_key=True),
    Column("step", Key, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("engine", String, nullable=False),
    Column("receipts", LargeBinary, nullable=False),
)

artifacts = Table(
    "artifacts",
    PROGRESS,
    Column("job", Key, primary_key=True),
    Column("chunk", Integer, primary_key=True),
    Column("stage", Key, primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("created_at", Int64, nullable=False),
)
