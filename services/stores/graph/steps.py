"""Steps of a walk, whatever it reads: over which node a statement was reached, which nodes lie beyond."""

from collections.abc import Collection, Sequence

from services.domain.graph import EntityType
from services.domain.ids import EntityId
from services.stores.graph.port import StatementView


def via(view: StatementView, frontier: Collection[EntityId]) -> EntityId:
    """The end of a statement at which the walk stood."""
    if view.subject.id in frontier or view.object is None:
        return view.subject.id
    return view.object.id


def beyond(level: Sequence[StatementView], visited: Collection[EntityId]) -> set[EntityId]:
    """The ends of statements where the walk has not been; it never goes on by a predicate."""
    ends = [node for view in level for node in (view.subject, view.object) if node is not None]
    return {node.id for node in ends if node.type is not EntityType.PREDICATE and node.id not in visited}
