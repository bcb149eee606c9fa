"""Row-level security: a transaction sees and writes the rows of the scope that it was told, and no others."""

from alembic.operations import Operations

from services.stores.sql.revising import secure, told, unsecure

revision = "0002"
down_revision = "0001"

_TABLES = (
    "memory_decisions",
    "memory_episodes",
    "memory_revisions",
    "memory_staged",
    "memory_versions",
    "memory_voice",
    "memory_voice_revocations",
    "memory_passages",
    "memory_voice_claims",
    "memory_voice_ends",
)


def upgrade(op: Operations) -> None:
    secure(op, dict.fromkeys(_TABLES, f"scope = {told('scope')}"))


def downgrade(op: Operations) -> None:
    unsecure(op, _TABLES)
