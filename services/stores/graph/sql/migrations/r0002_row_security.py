"""Row-level security: a transaction sees and writes the rows of the scope that it was told, and no others."""

from alembic.operations import Operations

from services.stores.sql.revising import secure, told, unsecure

revision = "0002"
down_revision = "0001"

_TABLES = (
    "graph_entities",
    "graph_revocations",
    "graph_aliases",
    "graph_statements",
    "graph_claims",
    "graph_denials",
    "graph_ends",
    "graph_spans",
    "graph_verdicts",
)


def upgrade(op: Operations) -> None:
    secure(op, dict.fromkeys(_TABLES, f"scope = {told('scope')}"))


def downgrade(op: Operations) -> None:
    unsecure(op, _TABLES)
