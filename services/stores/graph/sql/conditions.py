"""Conditions that reads share: what counts at a revision, and which spans are as asked."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Exists,
    FromClause,
    Select,
    Table,
    and_,
    exists,
    literal_column,
    or_,
    select,
)

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.chunks import IN_CHUNK, in_chunks
from services.stores.graph.port import AsOf
from services.stores.graph.sql import schema
from services.stores.graph.sql.schema import OPEN, UNKNOWN_START
from services.stores.storable import is_storable

I = TypeVar("I", bound=str)  # noqa: E741

CREATED: ColumnElement[int] = schema.statements.c.created_at
UNORDERED: ColumnElement[int] = CREATED + literal_column("0")
"""Equal to CREATED, but no index has it: for queries that another condition narrows better than an order.

Without it SQLite, to save a sort, reads a whole graph by age and drops what the condition does not want.
"""


def id_chunks(ids: Iterable[I], size: int = IN_CHUNK) -> Iterator[list[I]]:
    """The distinct ids, a chunk at a time. One that no store could hold names nothing and is left out."""
    every = list(ids)
    # All of them at a time: one that is not is rare.
    return in_chunks(every if is_storable("".join(every)) else filter(is_storable, every), size)


def with_revocations(table: Table) -> Select[Any]:
    """The records of a table, each with the revision that revoked it in `revoked_at`, or NULL."""
    return select(table, schema.revocations.c.revoked_at).select_from(_joined(table))


def counting(table: Table, scope: Scope, known_at: Revision) -> ColumnElement[bool]:
    """True for a record (joined to its revocation) that counts at a revision."""
    revoked_at = schema.revocations.c.revoked_at
    return and_(
        table.c.scope == scope.key,
        table.c.recorded_at <= known_at,
        or_(revoked_at.is_(None), revoked_at > known_at),
    )


def _joined(table: Table) -> FromClause:
    revocations = schema.revocations
    return table.outerjoin(
        revocations, and_(revocations.c.scope == table.c.scope, revocations.c.record == table.c.id)
    )


def believed(scope: Scope, known_at: Revision) -> ColumnElement[bool]:
    """True for a span that was believed at a revision."""
    columns = schema.spans.c
    return and_(columns.scope == scope.key, columns.known_from <= known_at, columns.known_to > known_at)


def window(at: AsOf) -> tuple[int, int]:
    """(before, after): `at` sees a span that starts before the one and ends after the other."""
    starts = [OPEN] if at.until is None else [at.until]
    ends = [UNKNOWN_START] if at.since is None else [at.since]
    if at.valid_at is not None:
        starts.append(Instant(at.valid_at + 1))
        ends.append(at.valid_at)
    return min(starts), max(ends)


def as_asked(scope: Scope, at: AsOf) -> ColumnElement[bool]:
    """True for a span that `at` sees."""
    before, after = window(at)
    columns = schema.spans.c
    return and_(believed(scope, at.known_at), columns.valid_at < before, columns.invalid_at > after)


def in_hull(at: AsOf) -> ColumnElement[bool]:
    """False for a statement none of whose spans, whenever believed, `at` can see: a cheap first sieve."""
    before, after = window(at)
    columns = schema.statements.c
    return and_(columns.hull_from < before, columns.hull_to > after)


def has_span(*conditions: ColumnElement[bool]) -> Exists:
    """True for a statement with a span that meets all conditions, its scope among them."""
    spans = schema.spans
    of_statement = spans.c.statement == schema.statements.c.id
    return exists(select(spans.c.id).where(of_statement, *conditions).correlate(schema.statements))


def visible(scope: Scope, at: AsOf, created_at: ColumnElement[int]) -> ColumnElement[bool]:
    """True for a statement of the scope with a span as asked. `created_at`: CREATED or UNORDERED."""
    return and_(
        schema.statements.c.scope == scope.key,
        created_at <= at.known_at,
        in_hull(at),
        has_span(as_asked(scope, at)),
    )
