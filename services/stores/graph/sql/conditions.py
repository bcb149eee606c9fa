"""Conditions that reads share: what counts at a revision, and which spans are as asked."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Exists, FromClause, Select, Table, and_, exists, or_, select

from services.domain.ids import Revision
from services.domain.scope import Scope
from services.stores.graph.port import AsOf
from services.stores.graph.sql import schema
from services.stores.sql.rows import in_chunks, is_storable

I = TypeVar("I", bound=str)  # noqa: E741


def id_chunks(ids: Iterable[I]) -> Iterator[list[I]]:
    """The distinct ids, a chunk at a time. One that no store could hold names nothing and is left out."""
    return in_chunks(item for item in ids if is_storable(item))


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


def as_asked(scope: Scope, at: AsOf) -> ColumnElement[bool]:
    """True for a span that `at` sees."""
    columns = schema.spans.c
    wanted = [believed(scope, at.known_at)]
    if at.valid_at is not None:
        wanted += [columns.valid_at <= at.valid_at, columns.invalid_at > at.valid_at]
    if at.since is not None:
        wanted.append(columns.invalid_at > at.since)
    if at.until is not None:
        wanted.append(columns.valid_at < at.until)
    return and_(*wanted)


def in_hull(at: AsOf) -> ColumnElement[bool]:
    """False for a statement none of whose spans, whenever believed, `at` can see: a cheap first sieve."""
    columns = schema.statements.c
    wanted = [columns.hull_from <= columns.hull_to]
    if at.valid_at is not None:
        wanted += [columns.hull_from <= at.valid_at, columns.hull_to > at.valid_at]
    if at.since is not None:
        wanted.append(columns.hull_to > at.since)
    if at.until is not None:
        wanted.append(columns.hull_from < at.until)
    return and_(*wanted)


def has_span(*conditions: ColumnElement[bool]) -> Exists:
    """True for a statement with a span that meets all conditions."""
    spans = schema.spans
    of_statement = spans.c.statement == schema.statements.c.id
    # The span's scope is among the conditions; equal to the statement's, as both are the caller's.
    return exists(select(spans.c.id).where(of_statement, *conditions).correlate(schema.statements))


def visible(scope: Scope, at: AsOf) -> ColumnElement[bool]:
    """True for a statement of the scope with a span as asked."""
    columns = schema.statements.c
    return and_(
        columns.scope == scope.key,
        columns.created_at <= at.known_at,
        in_hull(at),
        has_span(as_asked(scope, at)),
    )
