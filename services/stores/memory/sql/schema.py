"""Memory's tables, an index for every access path. A scope's key opens every primary key and index."""

from pathlib import Path

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
)

from services.stores.memory.sql.summary_tables import SummaryTables
from services.stores.sql.migrations import Schema
from services.stores.sql.rows import Int64, Key, Prose

metadata = MetaData()
SCHEMA = Schema("memory", metadata, Path(__file__).parent / "migrations")


def _scope() -> Column[str]:
    return Column("scope", Key, primary_key=True)


# Sessions, documents and messages are named by tenants, at any length: indexes hold digests of those names.

episodes = Table(
    "memory_episodes",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("job", Key, nullable=False),
    Column("kind", Key, nullable=False),
    Column("text", Prose, nullable=False),
    Column("reference_time", Int64, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("session", Prose),
    Column("session_key", Key),
    Column("document", Prose),
    Column("document_key", Key),
    Column("version", Integer),
    Column("heading", Prose, nullable=False, doc="JSON array of texts"),
    Column("title", Prose, nullable=False),
    Column("source", Prose, nullable=False),
    Column("metadata", Prose, nullable=False, doc="JSON array of pairs of texts"),
    Column("deleted_at", Int64),
    Column("unlearned_at", Int64),
    Column("held", Boolean),
    Index("memory_episodes_job", "scope", "job", "position", "id"),
    Index("memory_episodes_said", "scope", "reference_time", "id"),
    Index("memory_episodes_session", "scope", "session_key", "reference_time", "id"),
    Index("memory_episodes_recent", "scope", "session_key", "created_at", "position", "id"),
    Index("memory_episodes_document", "scope", "document_key", "reference_time", "id"),
    Index("memory_episodes_source", "scope", "source", "id"),
)

passages = Table(
    "memory_passages",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("episode", Key, nullable=False),
    Column("position", Integer, nullable=False),
    Column("text", Prose, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("hash", Key, nullable=False),
    Column("speaker", Prose, nullable=False),
    Column("role", Key, nullable=False),
    Column("message_id", Prose, nullable=False),
    Column("message_key", Key),
    Column("said_at", Int64),
    # Of its episode, for the look-ups of what is known.
    Column("session_key", Key),
    Column("document_key", Key),
    Column("version", Integer),
    Column("held", Boolean),
    ForeignKeyConstraint(["scope", "episode"], ["memory_episodes.scope", "memory_episodes.id"]),
    Index("memory_passages_episode", "scope", "episode", "position", "id"),
    Index("memory_passages_session_hash", "scope", "session_key", "hash"),
    Index("memory_passages_document_hash", "scope", "document_key", "hash"),
    Index("memory_passages_document", "scope", "document_key", "id"),
    Index("memory_passages_message", "scope", "session_key", "message_key"),
)

versions = Table(
    "memory_versions",
    metadata,
    _scope(),
    Column("document_key", Key, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("document", Prose, nullable=False),
    Column("hash", Key, nullable=False),
    Column("text", Prose, nullable=False),
    Column("reference_time", Int64, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("job", Key, nullable=False),
    Column("title", Prose, nullable=False),
    Column("tokens", Integer, doc="of its text; NULL where that was not counted"),
    Index("memory_versions_job", "scope", "job"),
)

text_changes = Table(
    "memory_text_changes",
    metadata,
    _scope(),
    Column("changes", Int64, nullable=False, doc="how often episodes or passages came, moved or went"),
)

fences = Table(
    "memory_fences",
    metadata,
    _scope(),
    Column("generation", Int64, nullable=False, doc="how many erasures began and ended"),
    Column("up", Boolean, nullable=False, doc="one is under way: nothing is written"),
)

snapshots = Table(
    "memory_snapshots",
    metadata,
    _scope(),
    Column("kind", Key, primary_key=True),
    Column("keeping", Key, nullable=False, doc="which parts are its own"),
    Column("generation", Int64, nullable=False),
    Column("layout", Key, nullable=False),
    Column("taken_at", Int64, nullable=False),
    Column("parts", Integer, nullable=False, doc="how many"),
)

snapshot_parts = Table(
    "memory_snapshot_parts",
    metadata,
    _scope(),
    Column("keeping", Key, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)

snapshot_drops = Table(
    "memory_snapshot_drops",
    metadata,
    _scope(),
    Column("drops", Int64, nullable=False, doc="how often its snapshots went; outlives the graph"),
)

staged = Table(
    "memory_staged",
    metadata,
    _scope(),
    Column("episode", Key, primary_key=True),
    Column("payload", LargeBinary, nullable=False),
)

revisions = Table(
    "memory_revisions",
    metadata,
    _scope(),
    Column("revision", Int64, primary_key=True, autoincrement=False),
    Column("commit_id", Key, nullable=False),
    Column("at", Int64, nullable=False),
    Column("published", Boolean, nullable=False),
    Column("payload", LargeBinary, nullable=False, doc="empty once it is published"),
    Column("summary", Prose, nullable=False),
    Index("memory_revisions_commit", "scope", "commit_id", unique=True),
)

voice = Table(
    "memory_voice",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("kind", Key, nullable=False),
    Column("text", Prose, nullable=False),
    Column("created_at", Int64, nullable=False),
    Column("forgotten_at", Int64, doc="the revision that emptied its text; a later one restores it"),
    Index("memory_voice_created", "scope", "created_at", "id"),
)

voice_claims = Table(
    "memory_voice_claims",
    metadata,
    _scope(),
    Column("voice", Key, primary_key=True),
    Column("id", Key, primary_key=True),
    Column("episode", Key, nullable=False),
    Column("passage", Key),
    Column("quote", Prose, nullable=False),
    Column("attested_at", Int64, nullable=False),
    Column("recorded_at", Int64, nullable=False),
    ForeignKeyConstraint(["scope", "voice"], ["memory_voice.scope", "memory_voice.id"]),
    Index("memory_voice_claims_episode", "scope", "episode"),
)

voice_ends = Table(
    "memory_voice_ends",
    metadata,
    _scope(),
    Column("voice", Key, primary_key=True),
    Column("id", Key, primary_key=True),
    Column("at", Int64, nullable=False),
    Column("by", Key),
    Column("episode", Key),
    Column("why", Prose, nullable=False),
    Column("recorded_at", Int64, nullable=False),
    ForeignKeyConstraint(["scope", "voice"], ["memory_voice.scope", "memory_voice.id"]),
    Index("memory_voice_ends_episode", "scope", "episode"),
)

voice_revocations = Table(
    "memory_voice_revocations",
    metadata,
    _scope(),
    Column("record", Key, primary_key=True),
    Column("revoked_at", Int64, nullable=False),
)

merges = Table(
    "memory_merges",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("entity", Key, nullable=False),
    Column("into", Key, nullable=False),
    Column("kind", Integer, nullable=False),
    Column("judge", Integer, nullable=False),
    Column("attested_at", Int64, nullable=False),
    Column("why", Prose, nullable=False),
    Column("model", Prose, nullable=False),
    Column("prompt_version", Prose, nullable=False),
    Column("episode", Key),
    Column("recorded_at", Int64, nullable=False),
    Index("memory_merges_entity", "scope", "entity"),
    Index("memory_merges_into", "scope", "into"),
    Index("memory_merges_episode", "scope", "episode"),
    Index("memory_merges_recorded", "scope", "recorded_at", "id"),
    Index("memory_merges_kind", "scope", "kind"),
)

declarations = Table(
    "memory_declarations",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("name", Prose, nullable=False),
    Column("cardinality", Key, nullable=False),
    Column("aliases", Prose, nullable=False, doc="JSON array of texts"),
    Column("inverse", Prose),
    Column("recorded_at", Int64, nullable=False),
    Index("memory_declarations_recorded", "scope", "recorded_at", "id"),
)

reading_revocations = Table(
    "memory_reading_revocations",
    metadata,
    _scope(),
    Column("record", Key, primary_key=True),
    Column("revoked_at", Int64, nullable=False),
)

archive = Table(
    "memory_archive",
    metadata,
    _scope(),
    Column("statement", Key, primary_key=True),
    Column("archived_at", Int64, nullable=False, doc="the latest revision that archived it"),
    Column("restored_at", Int64, nullable=False, doc="the latest that brought it back; 0: none did"),
)

decisions = Table(
    "memory_decisions",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("revision", Int64, nullable=False),
    Column("at", Int64, nullable=False),
    Column("action", Key, nullable=False),
    Column("target", Key, nullable=False),
    Column("actor", Prose, nullable=False),
    Column("why", Prose, nullable=False),
    Column("model", Prose, nullable=False),
    Column("prompt_version", Prose, nullable=False),
    Column("other", Key),
    Column("request", Key),
    Index("memory_decisions_newest", "scope", "revision", "at", "id"),
    Index("memory_decisions_target", "scope", "target", "revision", "at", "id"),
    Index("memory_decisions_clock", "scope", "at", "id"),
    Index("memory_decisions_other", "scope", "other"),
)

summaries = SummaryTables(metadata)
