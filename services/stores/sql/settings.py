"""Settings of the SQL databases: the pool of connections to PostgreSQL, and who migrates."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MigrateAtStart = Literal["embedded", "always", "never"]
"""Which databases a server migrates when it starts: SQLite files, all, none."""


class PostgresSettings(BaseModel):
    """Connections to PostgreSQL. Each SQL store of a process has a pool of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    pool_size: int = Field(default=10, ge=1)
    """Connections that a store of a process keeps to PostgreSQL."""
    pool_overflow: int = Field(default=0, ge=0)
    """Connections above that, opened in a rush and closed after it."""
    pool_wait_seconds: float = Field(default=30.0, gt=0)
    """How long a call waits for a connection; then the store is unavailable to it."""
    pool_recycle_seconds: int = Field(default=1800, ge=1)
    """A connection older than this is opened anew before its next use."""
    pool_pre_ping: bool = True
    """Try a connection before each use: one round trip, and a restarted server is not noticed by callers."""
    connect_timeout_seconds: int = Field(default=5, ge=2)
    """Until a connection stands."""
    statement_timeout_seconds: float = Field(default=30.0, gt=0)
    """No statement runs longer, migrations aside; then the store is unavailable to the call."""
    application_name: str = Field(default="palimpsest", pattern=r"^[ -~]{1,63}$")
    """How PostgreSQL names the connections, in `pg_stat_activity` and its log."""
