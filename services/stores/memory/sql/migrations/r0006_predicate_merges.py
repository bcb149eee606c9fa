"""A way to the few merges that are of predicates."""

from alembic.operations import Operations

revision = "0006"
down_revision = "0005"

_TABLE, _INDEX = "memory_merges", "memory_merges_kind"


def upgrade(op: Operations) -> None:
    op.create_index(_INDEX, _TABLE, ["scope", "kind"])


def downgrade(op: Operations) -> None:
    op.drop_index(_INDEX, _TABLE)
