"""From errors of drivers to errors of stores: the one place that knows which of them mean "not there"."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from services.stores.errors import StoreError, StoreUnavailable, WriteConflict

_SQLITE_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CORRUPT,
    }
)


@contextmanager
def translated(component: str) -> Iterator[None]:
    """Raises StoreUnavailable(component) or WriteConflict for what drivers say; the rest passes unchanged.

    What stays as it was is a mistake of ours: wrong SQL, a broken constraint.
    """
    try:
        yield
    except (exc.DBAPIError, exc.TimeoutError, OSError) as error:
        known = store_error(component, error)
        if known is None:
            raise
        raise known from error


def store_error(component: str, error: BaseException) -> StoreError | None:
    """What an error of SQLAlchemy, a driver or a socket means to callers; None for mistakes of ours."""
    if isinstance(error, exc.TimeoutError | OSError):
        return StoreUnavailable(component)
    if not isinstance(error, exc.DBAPIError):
        return None
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)
        return (
            StoreUnavailable(component) if code is not None and code & 0xFF in _SQLITE_UNAVAILABLE else None
        )
    # Class 40 of SQLSTATE: a serialization failure or a deadlock.
    if (getattr(cause, "sqlstate", None) or "").startswith("40"):
        return WriteConflict("another transaction changed the same rows")
    lost = error.connection_invalidated or isinstance(error, exc.OperationalError | exc.InterfaceError)
    return StoreUnavailable(component) if lost else None
