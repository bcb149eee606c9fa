"""Row-level security: a transaction sees and writes the rows of the tenant that it was told, and no others.

Prices are nobody's. Payloads and spends name no tenant: they are seen with their job, with their hold.
"""

from alembic.operations import Operations

from services.stores.sql.revising import secure, told, unsecure

revision = "0002"
down_revision = "0001"

_OF_TENANT = f"tenant = {told('tenant')}"
_OF_ALL = f"{told('across')} IS NOT NULL"
_ROWS = {
    "tenants": f"id = {told('tenant')} OR {_OF_ALL}",
    "api_keys": f"{_OF_TENANT} OR {_OF_ALL}",
    "graphs": f"{_OF_TENANT} OR {_OF_ALL}",
    "requests": f"{_OF_TENANT} OR {_OF_ALL}",
    "jobs": f"{_OF_TENANT} OR id = {told('job')} OR {_OF_ALL}",
    "outbox": f"{_OF_ALL} OR EXISTS (SELECT FROM jobs WHERE jobs.id = outbox.job)",
    "accounts": f"{_OF_TENANT} OR {_OF_ALL}",
    "journal_groups": f"{_OF_TENANT} OR {_OF_ALL}",
    "journal_entries": f"{_OF_TENANT} OR {_OF_ALL}",
    "holds": f"{_OF_TENANT} OR job = {told('job')} OR {_OF_ALL}",
    "spends": f"{_OF_ALL} OR EXISTS (SELECT FROM holds WHERE holds.id = spends.hold)",
    "goodwill_days": f"{_OF_TENANT} OR {_OF_ALL}",
}


def upgrade(op: Operations) -> None:
    secure(op, _ROWS)


def downgrade(op: Operations) -> None:
    unsecure(op, _ROWS)
