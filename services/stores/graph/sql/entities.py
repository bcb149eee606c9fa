"""Entities: lists in the order of their names, their aliases, and how many statements name them."""

from collections import Counter
from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId, Revision
from services.domain.scope import Scope
from services.stores.graph.port import NAME_HEAD, Alias, AsOf, EntityFilter
from services.stores.graph.sql import schema, values
from services.stores.graph.sql.conditions import UNORDERED, id_chunks, visible
from services.stores.graph.sql.reads import fetch
from services.stores.paging import Listed, Page
from services.stores.storable import is_storable

_ENTITY, _ALIAS, _STATEMENT = schema.entities.c, schema.aliases.c, schema.statements.c
_head = func.substr(_ENTITY.key, 1, NAME_HEAD)


async def aliases_of(
    connection: AsyncConnection, scope: Scope, ids: Iterable[EntityId], known_at: Revision
) -> list[Alias]:
    found: list[Alias] = []
    for chunk in id_chunks(ids):
        query = select(schema.aliases).where(
            _ALIAS.scope == scope.key, _ALIAS.entity.in_(chunk), _ALIAS.recorded_at <= known_at
        )
        found += await fetch(connection, query, values.alias_of)
    return sorted(found, key=lambda alias: (alias.key, alias.type, alias.entity))


async def list_entities(
    connection: AsyncConnection, scope: Scope, where: EntityFilter, known_at: Revision, page: Page
) -> Listed[Entity]:
    query = select(schema.entities).where(
        _ENTITY.scope == scope.key,
        _ENTITY.created_at <= known_at,
        _ENTITY.forgotten_at.is_(None),
        _of_types(where.types),
    )
    if where.prefix:
        if not is_storable(where.prefix):
            return Listed([])
        query = query.where(_named(scope, where, known_at))
    if page.after:
        head, id = position(page.after)
        query = query.where(or_(_head > head, and_(_head == head, _ENTITY.id > id)))
    found = await fetch(connection, query.order_by(_head, _ENTITY.id).limit(page.size + 1), values.entity_of)
    items = found[: page.size]
    return Listed(items, token(items[-1]) if len(found) > page.size else "")


def token(entity: Entity) -> str:
    """Where an entity stands in a list: its id, then the head of its key, which may hold anything."""
    return f"{entity.id}/{entity.key[:NAME_HEAD]}"


def position(after: str) -> tuple[str, str]:
    """Head and id of a token. Raises ValueError for one that `token` did not make."""
    id, slash, head = after.partition("/")
    if not slash or not id or len(head) > NAME_HEAD or not is_storable(after):
        raise ValueError("not a position in a list of entities")
    return head, id


def _of_types(types: Sequence[EntityType]) -> ColumnElement[bool]:
    if not types:
        return _ENTITY.type != EntityType.PREDICATE.value
    return _ENTITY.type.in_([type.value for type in types])


def _named(scope: Scope, where: EntityFilter, known_at: Revision) -> ColumnElement[bool]:
    begins = exists(
        select(_ALIAS.entity)
        .where(
            _ALIAS.scope == scope.key,
            _ALIAS.entity == _ENTITY.id,
            _ALIAS.recorded_at <= known_at,
            func.substr(_ALIAS.key, 1, len(where.prefix)) == where.prefix,
        )
        .correlate(schema.entities)
    )
    return or_(begins, *(_ENTITY.id.in_(chunk) for chunk in id_chunks(where.also)))


async def degrees(
    connection: AsyncConnection, scope: Scope, groups: Sequence[Sequence[EntityId]], at: AsOf
) -> list[int]:
    place = {id: number for number, group in enumerate(groups) for id in group if is_storable(id)}
    named: Counter[int] = Counter()
    for chunk in id_chunks(place):
        for role in (_STATEMENT.subject, _STATEMENT.predicate, _STATEMENT.object):
            query = _visible(scope, at).where(role.in_(chunk)).add_columns(role, func.count()).group_by(role)
            for id, count in await connection.execute(query):
                named[place[id]] += count
        # A statement between two of one group was counted at both.
        pair = (_STATEMENT.subject, _STATEMENT.object)
        for others in id_chunks(place):
            query = _visible(scope, at).where(pair[0].in_(chunk), pair[1].in_(others))
            query = query.add_columns(*pair, func.count()).group_by(*pair)
            for subject, target, count in await connection.execute(query):
                if place[subject] == place[target]:
                    named[place[subject]] -= count
    return [named[number] for number in range(len(groups))]


def _visible(scope: Scope, at: AsOf) -> Select[tuple[()]]:
    return select().where(visible(scope, at, UNORDERED))
