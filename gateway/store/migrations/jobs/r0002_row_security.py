"""Row-level security: a transaction sees and writes the rows of the job that it was told, and no others."""

from alembic.operations import Operations

from services.stores.sql.revising import secure, told, unsecure

revision = "0002"
down_revision = "0001"

_TABLES = ("job_progress", "job_chunks", "job_events", "job_receipts", "artifacts")


def upgrade(op: Operations) -> None:
    secure(op, dict.fromkeys(_TABLES, f"job = {told('job')} OR {told('across')} IS NOT NULL"))


def downgrade(op: Operations) -> None:
    unsecure(op, _TABLES)
