"""Steps of a walk: over which node a statement was reached, and which nodes lie beyond a level."""

from collections.abc import Collection, Sequence

from services.domain.graph import EntityType
from services.domain.ids import EntityId
from services.stores.graph.port import StatementView


def via(view: StatementView, frontier: Collection[EntityId]) -> EntityId:
    if view.subject.id in frontier or view.object is None:
        return view.subject.id
    return view.object.id


def beyond(level: Sequence[StatementView], visited: Collection[EntityId]) -> set[EntityId]:
    ends = [node for view in level for node in (view.subject, view.object) if node is not None]
    return {node.id for node in ends if node.type is not EntityType.PREDICATE and node.id not in visited}
