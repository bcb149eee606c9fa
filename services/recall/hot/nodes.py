"""HotNodes: one graph's nodes, as they are: entities and predicates that some statement names."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from services.domain.graph import Entity
from services.domain.ids import EntityId
from services.recall.hot.arrays import Growing
from services.recall.states import State
from services.stores.graph.plain import entity_of, plain_entity
from services.stores.vectors.rows import digest, entity_text

_ENTITY_BYTES = 700


class HotNodes:
    """Places are those of the order in which nodes were put first."""

    def __init__(self, state: State | None = None) -> None:
        """`state`: another one's."""
        self.ids: list[EntityId] = []
        self._places: dict[EntityId, int] = {}
        self._entities: dict[EntityId, Entity] = {}
        self._has_name = Growing()
        if state:
            self.put(map(entity_of, state["entities"]))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        return len(self.ids) * _ENTITY_BYTES

    @property
    def state(self) -> State:
        """All that it holds."""
        return {"entities": [plain_entity(self._entities[id]) for id in self.ids]}

    def put(self, entities: Iterable[Entity]) -> list[int]:
        """Adds or replaces nodes; answers the places of those that were there and now read otherwise."""
        other: list[int] = []
        for entity in entities:
            place = self._places.setdefault(entity.id, len(self.ids))
            if place == len(self.ids):
                self.ids.append(entity.id)
                self._has_name.append(0)
            elif self._entities[entity.id] != entity:
                other.append(place)
            self._entities[entity.id] = entity
            self._has_name[place] = bool(entity_text(entity))
        return other

    def lacks(self, ids: Iterable[EntityId]) -> list[EntityId]:
        """Those of some nodes that are not there, each once."""
        return [id for id in dict.fromkeys(ids) if id not in self._entities]

    def place(self, id: EntityId) -> int | None:
        """Where a node stands, if it is there."""
        return self._places.get(id)

    def place_of(self, id: EntityId) -> int:
        """Where a node stands that is there."""
        return self._places[id]

    def places(self, ids: Iterable[EntityId]) -> list[int]:
        """Where those of some nodes stand that are there."""
        return [self._places[id] for id in ids if id in self._places]

    def __getitem__(self, id: EntityId) -> Entity:
        """A node that is there."""
        return self._entities[id]

    def among(self, ids: Sequence[EntityId]) -> dict[EntityId, Entity]:
        """Those of some nodes that are there."""
        return {id: self._entities[id] for id in ids if id in self._entities}

    def named(self) -> npt.NDArray[np.bool_]:
        """True for a node that is searched for: it has a name and is no predicate; shape (nodes,)."""
        return self._has_name.array.astype(bool)

    def text_digest(self, place: int) -> str:
        """Of the text that a node's vector is of."""
        return digest(entity_text(self._entities[self.ids[place]]))
