"""Slots: what else was said of the same subject and predicate, and what a fact replaced there."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from services.domain.ids import EntityId, Revision, StatementId
from services.domain.lexicon import Lexicon
from services.domain.predicates import Cardinality
from services.domain.records import Verdict
from services.domain.scope import Scope
from services.recall.hot.reads import FactReads
from services.recall.readings import ReadAs, shown_as
from services.stores.graph.port import AsOf, StatementFilter, StatementView

MAX_RIVALS = 100
"""Statements of slots that are read for one answer."""

Slots = Mapping[tuple[EntityId, EntityId], Sequence[StatementView]]
"""Statements by subject and predicate, with every span believed as known."""


async def read_slots(
    graph: FactReads,
    lexicon: Lexicon,
    scope: Scope,
    views: Sequence[StatementView],
    verdicts: Sequence[Verdict],
    known_at: Revision,
    reads: ReadAs,
) -> Slots:
    """What competes with some statements: in a SINGLE slot all of it, elsewhere what `verdicts` connect.

    `views` are shown as their nodes read, and so are the answers.
    Raises StoreUnavailable.
    """
    single = [view for view in views if lexicon.cardinality(view.predicate.key) is Cardinality.SINGLE]
    rivals: dict[StatementId, StatementView] = {view.statement.id: view for view in views}
    if single:
        where = StatementFilter(
            subjects=reads.spread(view.subject.id for view in single),
            predicates=reads.spread(view.predicate.id for view in single),
            include_ended=True,
        )
        first = await graph.first(scope, where, AsOf(known_at), MAX_RIVALS)
        shown = await shown_as(graph, scope, first, reads)
        rivals |= {view.statement.id: view for view in shown}
    multi = {view.statement.id for view in views} - {view.statement.id for view in single}
    pairs = [pair for pair in ((one.left, one.right) for one in verdicts) if multi.intersection(pair)]
    paired = dict.fromkeys(id for pair in pairs for id in pair)
    missing = [id for id in paired if id not in rivals][:MAX_RIVALS]
    if missing:
        found = await shown_as(graph, scope, await graph.views(scope, missing, AsOf(known_at)), reads)
        rivals |= {view.statement.id: view for view in found if view.spans}
    slots: dict[tuple[EntityId, EntityId], list[StatementView]] = defaultdict(list)
    for view in rivals.values():
        slots[view.subject.id, view.predicate.id].append(view)
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
