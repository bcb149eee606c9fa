"""Steps: views as a time shows them, over which node a walk reached them, which nodes lie beyond."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from services.domain.graph import EntityType
from services.domain.ids import EntityId
from services.recall.hot.packing import starts, stops
from services.stores.graph.port import StatementView


def cut(view: StatementView, before: int, after: int) -> StatementView:
    """The view with those of its spans alone that start before the one and stop after the other."""
    spans = [span for span in view.spans if starts(span) < before and stops(span) > after]
    return view if len(spans) == len(view.spans) else replace(view, spans=tuple(spans))


def via(view: StatementView, frontier: Collection[EntityId]) -> EntityId:
    if view.subject.id in frontier or view.object is None:
        return view.subject.id
    return view.object.id


def beyond(level: Sequence[StatementView], visited: Collection[EntityId]) -> set[EntityId]:
    ends = [node for view in level for node in (view.subject, view.object) if node is not None]
    return {node.id for node in ends if node.type is not EntityType.PREDICATE and node.id not in visited}
