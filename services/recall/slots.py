"""Slots: what else was said of the same subject and predicate, and what a fact replaced there."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from services.domain.ids import EntityId, Revision, StatementId
from services.domain.scope import Scope
from services.recall.care import together
from services.stores.graph.port import AsOf, GraphStore, StatementView

MAX_RIVALS = 100
"""Statements of slots that are read for one answer."""

Slots = Mapping[tuple[EntityId, EntityId], Sequence[StatementView]]
"""Statements by subject and predicate, with every span believed as known."""


async def read_slots(
    graph: GraphStore, scope: Scope, views: Sequence[StatementView], known_at: Revision
) -> Slots:
    """The slots of some statements. Raises StoreUnavailable."""
    keys = list(dict.fromkeys((view.subject.id, view.predicate.id) for view in views))
    listed = await together(*(graph.slot(scope, *key) for key in keys))
    ids: list[StatementId] = list(dict.fromkeys(id for found in listed if len(found) > 1 for id in found))
    known = {view.statement.id: view for view in views}
    missing = [id for id in ids if id not in known][:MAX_RIVALS]
    if missing:
        known |= {view.statement.id: view for view in await graph.views(scope, missing, AsOf(known_at))}
    slots: dict[tuple[EntityId, EntityId], list[StatementView]] = defaultdict(list)
    for id in ids:
        if id in known and known[id].spans:
            slots[known[id].subject.id, known[id].predicate.id].append(known[id])
    return slots


def replaced_by(view: StatementView, slot: Sequence[StatementView]) -> list[StatementView]:
    """The statements of a slot that ended just where this one began, latest first."""
    begins = {span.valid_at for span in view.spans if span.valid_at is not None}
    found = [
        (span.invalid_at, other)
        for other in slot
        if other.statement.id != view.statement.id
        for span in other.spans
        if span.invalid_at in begins
    ]
    found.sort(key=lambda pair: (-(pair[0] or 0), pair[1].statement.id))
    return list({other.statement.id: other for _, other in found}.values())


def successors(view: StatementView, slot: Sequence[StatementView]) -> list[StatementView]:
    """The statements of a slot that replaced this one, and those that replaced them, in that order."""
    met = {view.statement.id: view}
    frontier = [view]
    while frontier:
        ends = {span.invalid_at for one in frontier for span in one.spans if span.invalid_at is not None}
        frontier = [
            other
            for other in slot
            if other.statement.id not in met and any(span.valid_at in ends for span in other.spans)
        ]
        met |= {other.statement.id: other for other in frontier}
    return list(met.values())[1:]
