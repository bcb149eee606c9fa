"""Whose run of a job may write its progress."""

from alembic.operations import Operations
from sqlalchemy import Column, Integer

revision = "0003"
down_revision = "0002"


def upgrade(op: Operations) -> None:
    op.add_column("job_progress", Column("epoch", Integer, comment="of the run that may write; NULL is 0"))


def downgrade(op: Operations) -> None:
    op.drop_column("job_progress", "epoch")
