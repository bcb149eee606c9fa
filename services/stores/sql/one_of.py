"""Conditions on lists of ids: on SQLite one parameter, however many they are.

SQLAlchemy writes every member of an IN list into the statement: 500 cost more than reading their rows.
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Text, bindparam, column, func, select

from services.stores.chunks import IN_CHUNK

Ids = str | list[str]

_MOST = 10_000


def most_of(dialect: str) -> int:
    """How many ids are asked for at once."""
    return _MOST if dialect == "sqlite" else IN_CHUNK


def one_of(dialect: str, where: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """True where a column is one of the ids that the parameter `name` is given, as `listed`."""
    if dialect != "sqlite":
        return where.in_(bindparam(name, expanding=True))
    asked = func.json_each(bindparam(name, type_=Text())).table_valued(column("value", Text()))
    return where.in_(select(asked.c.value))


def listed(dialect: str, ids: Sequence[str]) -> Ids:
    """Ids, which can be stored, as a parameter of `one_of`."""
    return json.dumps(ids, ensure_ascii=False) if dialect == "sqlite" else list(ids)
