"""Filter expressions: the only text of queries that reaches Milvus, built from typed values alone."""

import re
from collections.abc import Iterable, Sequence

from services.domain.instants import BEGINNING, FOREVER, Instant
from services.domain.scope import Scope
from services.stores.vectors.port import VectorFilter

MAX_VALUES = 10_000
"""Values a filter may list: beyond it the expression outgrows what servers parse in good time."""

_OURS = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Ids (hex and dashes) and the names of our own enums. Holds nothing that an expression could trip over."""


def checked(text: str) -> str:
    """The text itself. Raises ValueError unless it is an id or name of our own alphabet."""
    if _OURS.fullmatch(text) is None:
        raise ValueError("an id or name is not of our own alphabet")
    return text


def key(scope: Scope, id: str) -> str:
    """The primary key of a row: scope and id, so that equal ids of two scopes are two rows."""
    return f"{scope.key}:{checked(id)}"


def id_of(key: str) -> str:
    """The id in a primary key."""
    return key.partition(":")[2]


def of_scope(scope: Scope) -> str:
    """Rows of a scope, and of no other."""
    return f'scope == "{checked(scope.key)}"'


def of_keys(scope: Scope, ids: Iterable[str]) -> str:
    """Rows by id. Milvus looks keys up when this is the whole expression; the scope is in every key."""
    return _one_of("id", [key(scope, id) for id in ids])


def between(scope: Scope, after: str, until: str) -> str:
    """Rows whose id is greater than `after` and not greater than `until`; "" is no bound."""
    terms = [of_scope(scope)]
    if after:
        terms.append(f'id > "{key(scope, after)}"')
    if until:
        terms.append(f'id <= "{key(scope, until)}"')
    return " and ".join(terms)


def expression(scope: Scope, where: VectorFilter) -> str:
    """The expression for a search. Raises ValueError on foreign text or too many values."""
    terms = [of_scope(scope)]
    if where.holds_at is not None:
        terms += [f"valid_at <= {_start(where.holds_at)}", f"invalid_at > {_end(where.holds_at)}"]
    if where.since is not None:
        terms.append(f"invalid_at > {_end(where.since)}")
    if where.until is not None:
        terms.append(f"valid_at < {max(int(where.until), BEGINNING + 1)}")
    for column, values in (
        ("aspect", where.aspects),
        ("subject", where.subjects),
        ("session", where.sessions),
    ):
        if values:
            terms.append(_one_of(column, [checked(value) for value in values]))
    if where.ids:
        terms.append(of_keys(scope, where.ids))
    return " and ".join(terms)


# The sentinels mean open, so that a row without a start or an end also holds at the sentinel itself.


def _start(at: Instant) -> int:
    return max(int(at), BEGINNING)


def _end(at: Instant) -> int:
    return min(int(at), FOREVER - 1)


def _one_of(column: str, values: Sequence[str]) -> str:
    if len(values) > MAX_VALUES:
        raise ValueError(f"a filter lists more than {MAX_VALUES} values")
    listed = ", ".join(f'"{value}"' for value in values)
    return f"{column} in [{listed}]"
