"""Lists of statements: filters, a stable order, and positions to continue from."""

from collections.abc import Sequence
from itertools import product

from sqlalchemy import ColumnElement, and_, or_, select, true, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope
from services.stores.chunks import IN_CHUNK
from services.stores.graph.port import AsOf, StatementFilter, StatementView
from services.stores.graph.sql import schema
from services.stores.graph.sql.conditions import (
    CREATED,
    UNORDERED,
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
from services.stores.storable import is_storable

FEW = 8
"""Nodes of a filter that are looked up one by one."""

Position = tuple[int, str]
"""Where a statement stands in a list: the revision that created it, then its id."""


async def list_statements(
    connection: AsyncConnection, scope: Scope, where: StatementFilter, at: AsOf, page: Page
) -> Listed[StatementView]:
    created_at, narrow = _narrow(scope, where, at)
    wanted = and_(visible(scope, at, created_at), *_fixed(scope, where, at))
    found = await _positions(connection, created_at, [and_(wanted, condition) for condition in narrow], page)
    ids = [StatementId(id) for _, id in found.items]
    return Listed(await views(connection, scope, ids, at), found.after)


async def scan(connection: AsyncConnection, scope: Scope, page: Page) -> Listed[StatementId]:
    found = await _positions(connection, CREATED, [schema.statements.c.scope == scope.key], page)
    return Listed([StatementId(id) for _, id in found.items], found.after)


async def of_predicate(
    connection: AsyncConnection, scope: Scope, predicate: EntityId, target: EntityId | None, page: Page
) -> Listed[StatementId]:
    columns = schema.statements.c
    chosen = and_(columns.scope == scope.key, columns.predicate == predicate)
    if target is not None:
        chosen = and_(chosen, columns.object == target)
    found = await _positions(connection, CREATED, [chosen], page)
    return Listed([StatementId(id) for _, id in found.items], found.after)


async def naming(
    connection: AsyncConnection, scope: Scope, entities: Sequence[EntityId], page: Page
) -> Listed[StatementId]:
    columns = schema.statements.c
    few = len(set(entities)) <= FEW
    places = (columns.subject, columns.predicate, columns.object)
    conditions = [
        and_(columns.scope == scope.key, place.in_(chunk))
        for place in places
        for chunk in id_chunks(entities, 1 if few else IN_CHUNK)
    ]
    found = await _positions(connection, CREATED if few else UNORDERED, conditions, page)
    return Listed([StatementId(id) for _, id in found.items], found.after)


async def _positions(
    connection: AsyncConnection,
    created_at: ColumnElement[int],
    conditions: Sequence[ColumnElement[bool]],
    page: Page,
) -> Listed[Position]:
    """A page of the statements that meet any of the conditions, in order of their positions."""
    id = schema.statements.c.id
    query = select(CREATED, id).order_by(created_at, id).limit(page.size + 1)
    if page.after:
        query = query.where(is_after(created_at, *position(page.after)))
    found: set[Position] = set()
    for condition in conditions:
        rows = await connection.execute(query.where(condition))
        found.update((created, statement) for created, statement in rows)
    items = sorted(found)[: page.size]
    return Listed(items, token(items[-1]) if len(found) > page.size else "")


def is_after(
    created_at: ColumnElement[int], revision: int | ColumnElement[int], id: str | ColumnElement[str]
) -> ColumnElement[bool]:
    """Whether a statement comes after a position in the order of creation."""
    later_id = and_(created_at == revision, schema.statements.c.id > id)
    return and_(created_at >= revision, or_(created_at > revision, later_id))


def token(at: Position) -> str:
    """A position as text, for who asks for what comes after it."""
    return f"{at[0]}.{at[1]}"


def position(text: str) -> Position:
    """What `token` made. Raises ValueError for what it did not."""
    revision, dot, id = text.partition(".")
    if not dot or not revision.isdecimal() or int(revision) > OPEN or not is_storable(id):
        raise ValueError("not a position in a list of statements")
    return int(revision), id


def _narrow(
    scope: Scope, where: StatementFilter, at: AsOf
) -> tuple[ColumnElement[int], list[ColumnElement[bool]]]:
    """Conditions whose union is the filter's ids, and how to name the time of creation beside them.

    A few nodes are one condition each: its index gives the order as well, and a page ends early. Long lists
    are cut into chunks, and, like episodes, found first and ordered afterwards.
    """
    columns = schema.statements.c
    asked = [
        (columns.subject, where.subjects),
        (columns.object, where.objects),
        (columns.predicate, where.predicates),
    ]
    nodes = [(column, list(dict.fromkeys(ids))) for column, ids in asked if ids]
    by_episode = where.episodes or where.invalidated_by is not None
    if nodes and len(nodes[0][1]) <= FEW and not by_episode:
        (leading, ids), *rest = nodes
        created_at = CREATED
        alternatives = [[leading == id for id in ids if is_storable(id)]]
    else:
        rest = nodes
        created_at = UNORDERED if nodes or by_episode else CREATED
        alternatives = []
    alternatives += [[column.in_(chunk) for chunk in id_chunks(ids)] for column, ids in rest]
    if where.episodes:
        alternatives.append([_claimed(scope, chunk, at) for chunk in id_chunks(where.episodes)])
    return created_at, [and_(true(), *combination) for combination in product(*alternatives)]


def _fixed(scope: Scope, where: StatementFilter, at: AsOf) -> list[ColumnElement[bool]]:
    """The conditions that hold whatever the ids."""
    fixed: list[ColumnElement[bool]] = []
    if where.aspects:
        fixed.append(schema.statements.c.aspect.in_([aspect.value for aspect in where.aspects]))
    if where.contested is not None:
        contested = has_span(as_asked(scope, at), schema.spans.c.contested.is_(True))
        fixed.append(contested if where.contested else ~contested)
    if where.invalidated_by is not None:
        fixed.append(_invalidated(scope, where.invalidated_by, at))
    elif not where.include_ended and at.valid_at is None and at.since is None and at.until is None:
        fixed.append(has_span(as_asked(scope, at), schema.spans.c.invalid_at == OPEN))
    return fixed


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
