"""The database's clock as SQL: one clock for every gateway that shares the database."""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, bindparam, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

SECOND = 1_000_000
"""Microseconds."""
DAY = 86_400 * SECOND


class _NowMicros(FunctionElement[int]):
    type = BigInteger()
    inherit_cache = True
    name = "now_micros"


@compiles(_NowMicros, "sqlite")
def _sqlite(_element: _NowMicros, _compiler: SQLCompiler, **_options: Any) -> str:
    # Exact to the millisecond, which is all that SQLite 3.40 tells.
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000"


@compiles(_NowMicros, "postgresql")
def _postgresql(_element: _NowMicros, _compiler: SQLCompiler, **_options: Any) -> str:
    # Not now(): that is when the transaction began, and it may have waited for a lock since.
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


class DatabaseClock:
    """Expressions of the database's time, in microseconds since 1970 UTC."""

    def now(self) -> ColumnElement[int]:
        return _NowMicros()

    def after(self, seconds: float) -> ColumnElement[int]:
        return self.now() + literal(round(seconds * SECOND), BigInteger())


class SkewedClock(DatabaseClock):
    """A database's clock that goes wrong by `skew_seconds`, which can be changed; for tests of expiry."""

    def __init__(self, skew_seconds: float = 0.0) -> None:
        self.skew_seconds = skew_seconds

    def now(self) -> ColumnElement[int]:
        # Asked when a statement is executed: one that was made earlier has the clock of then.
        skew = bindparam(None, callable_=lambda: round(self.skew_seconds * SECOND), type_=BigInteger())
        return _NowMicros() + skew
