"""SQL that was compiled once is not compiled again, whichever engine of this process sends it.

An engine keeps what it compiled to itself, and nearly every test opens engines of its own: each would compile
all statements of the stores anew, a tenth of the run. Here all share what they compiled, by SQLAlchemy's own
option for that.
"""

from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.util import LRUCache

_MOST = 3_000
"""Statements that are kept; those of all stores are a third of that."""


class _Compiled(LRUCache[Any, Any]):
    """Knows a dialect by its kind and its server's version; to SQLAlchemy each engine has one of its own."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_named(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_named(key), value)


def _named(key: Any) -> Any:
    dialect, *rest = key
    return type(dialect), dialect.server_version_info, *rest


_COMPILED = {"compiled_cache": _Compiled(_MOST)}


def _share(connection: Connection) -> None:
    engine = connection.engine
    if "compiled_cache" not in engine.get_execution_options():
        engine.update_execution_options(**_COMPILED)
        connection.execution_options(**_COMPILED)


def share() -> None:
    """Of every engine that is made from now on."""
    event.listen(Engine, "engine_connect", _share)
