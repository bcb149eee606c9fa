"""What follows ingests: labels, cited summaries of sessions, the persona, and how far that has come."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text

from services.stores.sql.revising import create_all, drop_all, secure, told

revision = "0009"
down_revision = "0008"

Key = String().with_variant(String(collation="C"), "postgresql")
Prose = Text().with_variant(Text(collation="C"), "postgresql")

metadata = MetaData()

sessions = Table(
    "memory_sessions",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("session_key", Key, primary_key=True),
    Column("session", Prose, nullable=False),
    Column("title", Prose, nullable=False),
    Column("sentences", Prose, nullable=False),
    Column("updated_at", BigInteger(), nullable=False),
    Column("revision", BigInteger(), nullable=False),
    Column("made_from", Key, nullable=False),
    Column("model", Prose, nullable=False),
    Column("prompt_version", Prose, nullable=False),
)

citations = Table(
    "memory_citations",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("cited", Key, primary_key=True),
    Column("session_key", Key, primary_key=True),
    Index("memory_citations_session", "scope", "session_key"),
)

labels = Table(
    "memory_labels",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("key", Key, primary_key=True),
    Column("name", Prose, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("embedder", Prose, nullable=False),
)

session_labels = Table(
    "memory_session_labels",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("label", Key, primary_key=True),
    Column("session_key", Key, primary_key=True),
    Column("position", Integer, nullable=False),
    Index("memory_session_labels_session", "scope", "session_key"),
)

personas = Table(
    "memory_personas",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("sections", Prose, nullable=False),
    Column("version", Integer, nullable=False),
    Column("updated_at", BigInteger(), nullable=False),
    Column("revision", BigInteger(), nullable=False),
    Column("made_from", Key, nullable=False),
    Column("model", Prose, nullable=False),
    Column("prompt_version", Prose, nullable=False),
)

followed = Table(
    "memory_followed",
    metadata,
    Column("scope", Key, primary_key=True),
    Column("revision", BigInteger(), nullable=False),
    Column("forgotten", BigInteger(), nullable=False),
)


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, {name: f"scope = {told('scope')}" for name in metadata.tables})


def downgrade(op: Operations) -> None:
    drop_all(op, metadata)
