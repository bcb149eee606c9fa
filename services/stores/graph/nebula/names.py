"""Names: aliases of entities, and lists of entities in the order of their keys.

Nothing of the order lies in the store: a list reads every entity of the graph, a page at a time or not.
"""

from collections.abc import Iterable

from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId, Revision
from services.domain.scope import Scope
from services.stores.graph.nebula import joins, layout
from services.stores.graph.nebula.layout import NEVER
from services.stores.graph.nebula.reads import aliases, edges, stored_entities
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.vids import Kind, id_of, is_id, vids
from services.stores.graph.port import NAME_HEAD, Alias, EntityFilter
from services.stores.paging import Listed, Page


async def aliases_of(
    sessions: Sessions, scope: Scope, ids: Iterable[EntityId], known_at: Revision
) -> list[Alias]:
    found = await edges(sessions, vids(scope, Kind.ENTITY, ids), [layout.ALIAS], reversely=True)
    # One without texts is left of a deletion that failed half way.
    known = [
        one for one in found if isinstance(one, Alias) and one.recorded_at <= known_at and one.name + one.key
    ]
    return sorted(known, key=lambda alias: (alias.key, alias.type, alias.entity))


async def list_entities(
    sessions: Sessions, scope: Scope, where: EntityFilter, known_at: Revision, page: Page
) -> Listed[Entity]:
    begin = _position(page.after)
    kinds = {
        Kind.PREDICATES if type is EntityType.PREDICATE else Kind.THINGS
        for type in where.types or (EntityType.CONCEPT,)
    }
    shelves = await joins.shelves(sessions, scope, *kinds)
    members = await joins.all_members(sessions, shelves, [layout.ON_SHELF], known_at)
    stored = await stored_entities(
        sessions, scope, [EntityId(id_of(member.position.member)) for member in members]
    )
    found = [
        one.entity
        for one in stored.values()
        if one.forgotten_at == NEVER
        and one.entity.created_at <= known_at
        and (not where.types or one.entity.type in where.types)
    ]
    if where.prefix:
        named = {
            alias.entity
            for alias in await aliases(sessions, scope, known_at)
            if alias.key.startswith(where.prefix)
        }
        named |= set(where.also)
        found = [entity for entity in found if entity.id in named]
    later = sorted((entity for entity in found if _place(entity) > begin), key=_place)
    items = later[: page.size]
    return Listed(items, f"{items[-1].id}/{_place(items[-1])[0]}" if len(later) > page.size else "")


def _place(entity: Entity) -> tuple[str, str]:
    return entity.key[:NAME_HEAD], entity.id


def _position(token: str) -> tuple[str, str]:
    if not token:
        return "", ""
    id, slash, head = token.partition("/")
    if not slash or not is_id(id) or len(head) > NAME_HEAD:
        raise ValueError("not a position in a list of entities")
    return head, id
