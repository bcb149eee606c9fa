"""Seeds: the entities that a walk starts from, and the entities that callers name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from services.domain.errors import EntityNotFound
from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId, Revision
from services.domain.names import compatible, name_key
from services.domain.scope import Scope
from services.recall.ids import is_our_id
from services.recall.readings import Readings
from services.stores.graph.port import GraphStore

NAMED, FOUND_BY_WORDS, FOUND_BY_VECTOR = 1.0, 0.5, 0.3
"""What a seed is worth: named in the question or by the caller, or merely like it."""
MAX_FOUND = 3
"""Seeds that one search gives."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Entities that a caller names, and names that no entity here has."""

    entities: Sequence[Entity] = ()
    unmatched: Sequence[str] = field(default=())


class Names:
    """Finds entities by the ids and names of callers, as known at a revision.

    One that reads as another is found as that one.
    """

    def __init__(self, graph: GraphStore, readings: Readings) -> None:
        self._graph = graph
        self._readings = readings

    async def entities(
        self, scope: Scope, named: str, known_at: Revision, type: EntityType = EntityType.UNKNOWN
    ) -> list[Entity]:
        """The entity of an id, or every one of a name and a fitting type, oldest first, no predicate."""
        return (await self._found(scope, [named], known_at, type))[named]

    async def every(
        self, scope: Scope, named: Sequence[str], known_at: Revision
    ) -> Mapping[str, Sequence[Entity]]:
        """Of each name the entities that go by it, no predicate; none for a name that nothing has."""
        return await self._found(scope, named, known_at, EntityType.UNKNOWN)

    async def hints(self, scope: Scope, hints: Sequence[str], known_at: Revision) -> Hints:
        """What hints mean. Raises EntityNotFound for an id that is not here."""
        found = await self._found(scope, hints, known_at, EntityType.UNKNOWN)
        for hint in hints:
            if is_our_id(hint) and not found[hint]:
                raise EntityNotFound(hint)
        entities = {entity.id: entity for hint in hints for entity in found[hint]}
        return Hints(list(entities.values()), [hint for hint in hints if not found[hint]])

    async def _found(
        self, scope: Scope, named: Sequence[str], known_at: Revision, type: EntityType
    ) -> dict[str, list[Entity]]:
        ids = [EntityId(name) for name in named if is_our_id(name)]
        keys = {name: name_key(name) for name in named if not is_our_id(name)}
        by_id = {one.id: one for one in await self._graph.entities(scope, ids)} if ids else {}
        by_key: Mapping[str, Sequence[Entity]] = {}
        if keys:
            by_key = await self._graph.find_entities(scope, sorted(set(keys.values())), known_at)
        found: dict[str, list[Entity]] = {}
        for name in named:
            those = by_key.get(keys[name], ()) if name in keys else _one(by_id, EntityId(name))
            fitting = [
                one
                for one in those
                if one.created_at <= known_at
                and one.type is not EntityType.PREDICATE
                and compatible(one.type, type)
            ]
            found[name] = await self._roots(scope, fitting, known_at)
        return found

    async def _roots(self, scope: Scope, found: Sequence[Entity], known_at: Revision) -> list[Entity]:
        """What these read as, each once."""
        if not found:
            return []
        reads = await self._readings.of(scope, known_at)
        here = {one.id: one for one in found}
        roots = list(dict.fromkeys(reads.root(id) for id in here))
        others = [id for id in roots if id not in here]
        here |= {one.id: one for one in await self._graph.entities(scope, others)} if others else {}
        return [here[id] for id in roots if id in here]


def _one(by_id: Mapping[EntityId, Entity], id: EntityId) -> list[Entity]:
    return [by_id[id]] if id in by_id else []


def weighed(
    named: Iterable[EntityId], by_words: Sequence[tuple[str, float]], by_vector: Sequence[tuple[str, float]]
) -> dict[EntityId, float]:
    """Seeds with their worth. What is only like the question counts only where nothing in it is named."""
    seeds = dict.fromkeys(named, NAMED)
    for hits, worth in ((by_words, FOUND_BY_WORDS), (by_vector, FOUND_BY_VECTOR)):
        best = hits[0][1] if hits else 0.0
        if worth is FOUND_BY_VECTOR and seeds:
            break
        for id, score in hits[:MAX_FOUND]:
            if score >= best / 2:
                seeds.setdefault(EntityId(id), worth)
    return seeds
