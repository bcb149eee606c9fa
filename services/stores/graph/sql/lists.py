"""Lists of statements: filters, a stable order, and positions to continue from."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import StatementId
from services.domain.scope import Scope
from services.stores.graph.port import AsOf, StatementFilter, StatementView
from services.stores.graph.sql import schema
from services.stores.graph.sql.conditions import (
    as_asked,
    believed,
    counting,
    has_span,
    id_chunks,
    visible,
    with_revocations,
)
from services.stores.graph.sql.reads import views
from services.stores.graph.sql.schema import OPEN
from services.stores.paging import Listed, Page
from services.stores.sql.rows import is_storable

Position = tuple[int, str]
"""Where a statement stands in a list: the revision that created it, then its id."""


async def list_statements(
    connection: AsyncConnection, scope: Scope, where: StatementFilter, at: AsOf, page: Page
) -> Listed[StatementView]:
    found = await _positions(connection, _filters(scope, where, at), page)
    ids = [StatementId(id) for _, id in found.items]
    return Listed(await views(connection, scope, ids, at), found.after)


async def scan(connection: AsyncConnection, scope: Scope, page: Page) -> Listed[StatementId]:
    found = await _positions(connection, [schema.statements.c.scope == scope.key], page)
    return Listed([StatementId(id) for _, id in found.items], found.after)


async def _positions(
    connection: AsyncConnection, filters: Sequence[ColumnElement[bool]], page: Page
) -> Listed[Position]:
    """A page of statements that meet any of the filters, in order of their positions."""
    columns = schema.statements.c
    ordered = select(columns.created_at, columns.id).order_by(columns.created_at, columns.id)
    query = _after(ordered, page.after).limit(page.size + 1)
    found: set[Position] = set()
    for condition in filters:
        found.update((created_at, id) for created_at, id in await connection.execute(query.where(condition)))
    items = sorted(found)[: page.size]
    return Listed(items, _token(items[-1]) if len(found) > page.size else "")


def _after(query: Select[Any], token: str) -> Select[Any]:
    if not token:
        return query
    created_at, id = _position(token)
    columns = schema.statements.c
    return query.where(
        columns.created_at >= created_at,
        or_(columns.created_at > created_at, and_(columns.created_at == created_at, columns.id > id)),
    )


def _token(position: Position) -> str:
    return f"{position[0]}.{position[1]}"


def _position(token: str) -> Position:
    revision, dot, id = token.partition(".")
    if not dot or not revision.isdecimal() or int(revision) > OPEN or not is_storable(id):
        raise ValueError("not a position in a list of statements")
    return int(revision), id


def _filters(scope: Scope, where: StatementFilter, at: AsOf) -> list[ColumnElement[bool]]:
    """Conditions whose union is the filter: long lists of ids are cut into chunks, one condition each."""
    columns = schema.statements.c
    fixed = [visible(scope, at)]
    if where.aspects:
        fixed.append(columns.aspect.in_([aspect.value for aspect in where.aspects]))
    if where.contested is not None:
        contested = has_span(as_asked(scope, at), schema.spans.c.contested.is_(True))
        fixed.append(contested if where.contested else ~contested)
    if where.invalidated_by is not None:
        fixed.append(_invalidated(scope, where.invalidated_by, at))
    elif not where.include_ended and at.valid_at is None and at.since is None and at.until is None:
        fixed.append(has_span(as_asked(scope, at), schema.spans.c.invalid_at == OPEN))

    alternatives: list[list[ColumnElement[bool]]] = [
        [columns.subject.in_(chunk) for chunk in id_chunks(where.subjects)],
        [columns.predicate.in_(chunk) for chunk in id_chunks(where.predicates)],
        [columns.object.in_(chunk) for chunk in id_chunks(where.objects)],
        [_claimed(scope, chunk, at) for chunk in id_chunks(where.episodes)],
    ]
    asked = [where.subjects, where.predicates, where.objects, where.episodes]
    chosen = [choices for choices, ids in zip(alternatives, asked, strict=True) if ids]
    return [and_(*fixed, *combination) for combination in product(*chosen)]


def _claimed(scope: Scope, episodes: Sequence[str], at: AsOf) -> ColumnElement[bool]:
    claims = schema.claims
    return schema.statements.c.id.in_(
        with_revocations(claims)
        .with_only_columns(claims.c.statement)
        .where(counting(claims, scope, at.known_at), claims.c.episode.in_(episodes))
    )


def _invalidated(scope: Scope, episode: str, at: AsOf) -> ColumnElement[bool]:
    if not is_storable(episode):
        return schema.statements.c.id.is_(None)
    causes = union_all(
        *(
            select(table.c.id).where(table.c.scope == scope.key, table.c.episode == episode)
            for table in (schema.claims, schema.ends, schema.denials)
        )
    )
    spans = schema.spans.c
    return schema.statements.c.id.in_(
        select(spans.statement).where(believed(scope, at.known_at), spans.ended_by.in_(causes))
    )
