"""Documents and sources as wholes: an index of episodes by source, tokens of a document's versions."""

from alembic.operations import Operations
from sqlalchemy import Column, Integer

revision = "0005"
down_revision = "0004"


def upgrade(op: Operations) -> None:
    op.add_column("memory_versions", Column("tokens", Integer))
    op.create_index("memory_episodes_source", "memory_episodes", ["scope", "source", "id"])


def downgrade(op: Operations) -> None:
    op.drop_index("memory_episodes_source", "memory_episodes")
    op.drop_column("memory_versions", "tokens")
