"""Candidates: which known entities a newly named one may be, found by keys and vectors, never by a scan."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId, Revision
from services.domain.likeness import Likeness, Name, apart, fits, fuller, likeness, spelled_out
from services.domain.near_keys import is_near_key, keys_to_ask
from services.domain.scope import Scope
from services.llm.port import Embedder, Vectors
from services.stores.graph.port import GraphStore
from services.stores.vectors.port import Collection, VectorStore

MIN_COSINE = 0.7
MAX_NEIGHBOURS = 5
"""Of one entity by vectors (04-resolve)."""
MAX_BEARERS = 20
"""A near key that more entities bear tells none of them from the others."""
MAX_COUPLES = 6
"""Of one new entity, best first."""

_ORDER = {kind: place for place, kind in enumerate(Likeness)}


@dataclass(frozen=True, slots=True)
class Couple:
    """Two entities that may be one. `new` is named first by the draft; `here`: the draft names `other`, too.

    `alike` is None where only their vectors are near.
    """

    new: Entity
    other: Entity
    alike: Likeness | None
    score: float = 0.0
    here: bool = False

    @property
    def ids(self) -> frozenset[EntityId]:
        return frozenset({self.new.id, self.other.id})

    @property
    def rank(self) -> tuple[int, float, str, EntityId]:
        """Alike ones first, then near ones; ties by name."""
        place = len(_ORDER) if self.alike is None else _ORDER[self.alike]
        return place, -self.score, self.other.key, self.other.id


@dataclass(frozen=True, slots=True)
class Found:
    """Couples, and known entities that the shorter name of a couple may mean as well, by couple."""

    couples: Sequence[Couple] = ()
    rivals: Mapping[frozenset[EntityId], Sequence[Entity]] = field(default_factory=dict)

    def without(self, some: Set[EntityId]) -> "Found":
        """The same, but for what is found of some entities."""
        if not some:
            return self
        rivals = {ids: [one for one in found if one.id not in some] for ids, found in self.rivals.items()}
        return Found([couple for couple in self.couples if not couple.ids & some], rivals)


class Names:
    """Names of entities as they are compared, each made ready once."""

    def __init__(self) -> None:
        self._names: dict[EntityId, Name] = {}

    def __getitem__(self, entity: Entity) -> Name:
        known = self._names.get(entity.id)
        if known is None:
            known = self._names[entity.id] = Name(entity.name, entity.type)
        return known

    def couple(self, new: Entity, other: Entity, score: float = 0.0, here: bool = False) -> Couple | None:
        """The two if they are alike, or near and not told apart by their names."""
        if new.id == other.id:
            return None
        alike = likeness(self[new], self[other])
        if alike is None and (score < MIN_COSINE or apart(self[new], self[other])):
            return None
        return Couple(new, other, alike, score, here)

    def rivals(self, couple: Couple, every: Sequence[Entity]) -> list[Entity]:
        """Whom the shorter name of a couple may mean besides, of `every`, each once."""
        one, other = couple.new, couple.other
        full, short = (one, other) if fuller(self[one], self[other]) else (other, one)
        third = {entity.id: entity for entity in every if entity.id not in couple.ids}
        return [
            entity
            for entity in third.values()
            if likeness(self[entity], self[short]) is not None and not fits(self[entity], self[full])
        ]


class Candidates:
    """Finds couples. Reads as known at a revision. Raises StoreUnavailable, EngineError."""

    def __init__(self, graph: GraphStore, vectors: VectorStore, embedder: Embedder) -> None:
        self._graph = graph
        self._vectors = vectors
        self._embedder = embedder

    async def find(
        self, scope: Scope, fresh: Sequence[Entity], known: Sequence[Entity], at: Revision
    ) -> Found:
        """Couples of each fresh entity with entities of the graph, with `known` ones that the draft names,
        and with other fresh ones: at most MAX_COUPLES each, best first, each couple once.
        """
        if not fresh:
            return Found()
        keyed = await self._by_keys(scope, fresh, at)
        vectors = await self._embedder.passages([entity.name for entity in fresh])
        near = await self._by_vectors(scope, fresh, vectors, at)
        names, named = Names(), {entity.id for entity in known}
        found: dict[frozenset[EntityId], Couple] = {}
        rivals: dict[frozenset[EntityId], Sequence[Entity]] = {}
        among = _siblings(names, fresh, vectors)
        for new in fresh:
            others = {entity.id: (entity, 0.0) for entity in (*known, *keyed[new.id])}
            others |= {entity.id: (entity, score) for entity, score in near[new.id]}
            couples = [
                names.couple(new, other, score, id in named) for id, (other, score) in sorted(others.items())
            ]
            couples += among[new.id]
            best = sorted((each for each in couples if each is not None), key=lambda each: each.rank)
            for couple in best[:MAX_COUPLES]:
                if found.setdefault(couple.ids, couple) is couple:
                    every = [*fresh, *(other for other, _ in others.values())]
                    rivals[couple.ids] = names.rivals(couple, every)
        return Found(list(found.values()), rivals)

    async def _by_keys(
        self, scope: Scope, fresh: Sequence[Entity], at: Revision
    ) -> Mapping[EntityId, Sequence[Entity]]:
        """Entities of like keys: one look-up for all."""
        asked = {entity.id: keys_to_ask(entity.name, entity.type) for entity in fresh}
        keys = sorted({key for some in asked.values() for key in some})
        by_key = await self._graph.find_entities(scope, keys, at) if keys else {}
        telling = {
            key: found for key, found in by_key.items() if len(found) <= MAX_BEARERS or not is_near_key(key)
        }
        return {
            id: [
                entity
                for key in sorted(some)
                for entity in telling.get(key, ())
                if entity.name and entity.type is not EntityType.PREDICATE
            ]
            for id, some in asked.items()
        }

    async def _by_vectors(
        self, scope: Scope, fresh: Sequence[Entity], vectors: Vectors, at: Revision
    ) -> Mapping[EntityId, Sequence[tuple[Entity, float]]]:
        hits = await self._vectors.search(scope, Collection.ENTITIES, list(vectors), MAX_NEIGHBOURS)
        scores = [{EntityId(hit.id): hit.score for hit in some if hit.score >= MIN_COSINE} for some in hits]
        ids = sorted({id for some in scores for id in some} - {entity.id for entity in fresh})
        entities = await self._graph.entities(scope, ids) if ids else ()
        there = {one.id: one for one in entities if one.name and one.created_at <= at}
        return {
            new.id: [(there[id], score) for id, score in some.items() if id in there]
            for new, some in zip(fresh, scores, strict=True)
        }


def spelled_out_couples(here: Sequence[Entity], texts: Sequence[str]) -> list[Couple]:
    """Couples of entities of one draft, known ones included, that its text spells out: "X Y Z (XYZ)"."""
    bracketed = [text for text in texts if any(each in text for each in "([（")]
    if not bracketed:
        return []
    names = Names()
    found = [names.couple(one, other, here=True) for one, other in combinations(here, 2)]
    return [
        couple
        for couple in found
        if couple and any(spelled_out(text, names[couple.new], names[couple.other]) for text in bracketed)
    ]


def _siblings(
    names: Names, fresh: Sequence[Entity], vectors: Vectors
) -> Mapping[EntityId, Iterable[Couple | None]]:
    """Couples among the entities of one draft, each with the one that comes first."""
    cosines = np.asarray(vectors) @ np.asarray(vectors).T
    found: dict[EntityId, list[Couple | None]] = {entity.id: [] for entity in fresh}
    for (at, one), (where, other) in combinations(enumerate(fresh), 2):
        found[one.id].append(names.couple(one, other, float(cosines[at, where]), here=True))
    return found
