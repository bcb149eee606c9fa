"""How ids and names read: merges of entities, declarations of predicates, and what revokes them."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, Text

from services.stores.sql.revising import create_all, drop_all, secure, told, unsecure

revision = "0003"
down_revision = "0002"

Key = String().with_variant(String(collation="C"), "postgresql")
Prose = Text().with_variant(Text(collation="C"), "postgresql")
Int64 = BigInteger()

# Frozen: what later versions change is in later revisions.
metadata = MetaData()


def _scope() -> Column[str]:
    return Column("scope", Key, primary_key=True)


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

_TABLES = ("memory_merges", "memory_declarations", "memory_reading_revocations")


def upgrade(op: Operations) -> None:
    create_all(op, metadata)
    secure(op, dict.fromkeys(_TABLES, f"scope = {told('scope')}"))


def downgrade(op: Operations) -> None:
    unsecure(op, _TABLES)
    drop_all(op, metadata)
