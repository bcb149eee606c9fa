"""Lists of statements: filters, a stable order, and positions to continue from.

The narrowest of a filter's nodes, pairs or episodes gives the candidates, in order; they are read as views
and checked exactly, window by window, until a page is full. A filter without any of these goes through the
shelves: one that few statements of a large graph meet reads much of it.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import product

from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope
from services.stores.graph.nebula import joins, layout, reads
from services.stores.graph.nebula.joins import grouped, shelves
from services.stores.graph.nebula.layout import OPEN, Edge
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import Position, Window
from services.stores.graph.nebula.vids import Kind, Vid, id_of, is_id, known, pair, vid, vids
from services.stores.graph.port import AsOf, StatementFilter, StatementView
from services.stores.paging import Listed, Page

PAIRS = 200
"""Pairs of a filter's nodes that are looked up as pairs."""
LARGEST_CHECK = 500
"""Views that are read at once to be checked."""


async def list_statements(
    sessions: Sessions, scope: Scope, where: StatementFilter, at: AsOf, page: Page
) -> Listed[StatementView]:
    after = _position(scope, page.after)
    chosen: list[StatementView] = []
    async for ids in _candidates(sessions, scope, where, at, after, page.size + 1):
        views = await reads.views(sessions, scope, ids, at)
        chosen += [view for view in views if view.spans and _matches(view, where, at)]
        if len(chosen) > page.size:
            break
    items = chosen[: page.size]
    return Listed(items, _token(items[-1]) if len(chosen) > page.size else "")


async def scan(sessions: Sessions, scope: Scope, page: Page) -> Listed[StatementId]:
    after = _position(scope, page.after)
    groups = grouped(await shelves(sessions, scope, Kind.STATEMENTS), after.created_at if after else 0)
    return await _joined(sessions, groups, [layout.ON_SHELF], after, page)


async def naming(
    sessions: Sessions, scope: Scope, entities: Sequence[EntityId], page: Page
) -> Listed[StatementId]:
    after = _position(scope, page.after)
    anchors = vids(scope, Kind.ENTITY, entities)
    types = [layout.HAS_SUBJECT, layout.HAS_PREDICATE, layout.HAS_OBJECT]
    return await _joined(sessions, [anchors], types, after, page)


async def _joined(
    sessions: Sessions,
    groups: Sequence[Sequence[Vid]],
    types: Sequence[Edge],
    after: Position | None,
    page: Page,
) -> Listed[StatementId]:
    """A page of what joins to anchors."""
    found: list[Position] = []
    window = Window(page.size + 1, after=after)
    async for members in joins.windows(sessions, groups, types, window):
        found += [member.position for member in members]
        if len(found) > page.size:
            break
    items = found[: page.size]
    last = f"{items[-1].created_at}.{id_of(items[-1].member)}" if len(found) > page.size else ""
    return Listed([StatementId(id_of(one.member)) for one in items], last)


async def of_predicate(
    sessions: Sessions, scope: Scope, predicate: EntityId, target: EntityId | None, page: Page
) -> Listed[StatementId]:
    """Of one object: those of its in-edges whose statements, read for it, have the predicate."""
    named, edge = (predicate, layout.HAS_PREDICATE) if target is None else (target, layout.HAS_OBJECT)
    anchors = vids(scope, Kind.ENTITY, known([named]))
    window = Window(page.size + 1, after=_position(scope, page.after))
    found: list[Position] = []
    async for members in joins.windows(sessions, [anchors], [edge], window):
        positions = [member.position for member in members]
        if target is not None:
            ids = [member.statement for member in members]
            stored = await reads.stored_statements(sessions, scope, ids)
            of_it = {id for id, row in stored.items() if row.statement.predicate == predicate}
            positions = [one for one in positions if id_of(one.member) in of_it]
        found += positions
        if len(found) > page.size:
            break
    items = found[: page.size]
    last = f"{items[-1].created_at}.{id_of(items[-1].member)}" if len(found) > page.size else ""
    return Listed([StatementId(id_of(one.member)) for one in items], last)


def _token(view: StatementView) -> str:
    return f"{view.statement.created_at}.{view.statement.id}"


def _position(scope: Scope, token: str) -> Position | None:
    if not token:
        return None
    revision, dot, id = token.partition(".")
    digits = dot and revision.isascii() and revision.isdecimal() and len(revision) < 20
    if not digits or int(revision) >= OPEN or not is_id(id):
        raise ValueError("not a position in a list of statements")
    return Position(int(revision), vid(scope, Kind.STATEMENT, id))


async def _candidates(
    sessions: Sessions, scope: Scope, where: StatementFilter, at: AsOf, after: Position | None, page: int
) -> AsyncIterator[Sequence[StatementId]]:
    """Ids, in order, of all statements that may match; some at a time, more each time."""
    if where.invalidated_by is not None:
        few = await reads.ended_by(sessions, scope, where.invalidated_by, at.known_at)
    elif where.episodes:
        few = await reads.claimed_by(sessions, scope, where.episodes, at.known_at)
    else:
        window = Window(page, until=at.known_at, after=after)
        groups, types = await _anchors(sessions, scope, where, at, after)
        async for members in joins.windows(sessions, groups, types, window):
            for some in _portions([member.statement for member in members], page):
                yield some
        return
    found = await reads.stored_statements(sessions, scope, few)
    positions = sorted((row.statement.created_at, id) for id, row in found.items())
    begin = (after.created_at, id_of(after.member)) if after else (-1, "")
    for some in _portions(
        [StatementId(id) for created_at, id in positions if (created_at, id) > begin], page
    ):
        yield some


def _portions(ids: Sequence[StatementId], size: int) -> Iterable[Sequence[StatementId]]:
    size = min(max(size, joins.LEAST_WINDOW), LARGEST_CHECK)
    return (ids[begin : begin + size] for begin in range(0, len(ids), size))


async def _anchors(
    sessions: Sessions, scope: Scope, where: StatementFilter, at: AsOf, after: Position | None
) -> tuple[Sequence[Sequence[Vid]], Sequence[Edge]]:
    """What the candidates join to, and by which edges."""
    subjects = known(where.subjects)
    for others, kind in ((where.predicates, Kind.SLOT), (where.objects, Kind.BETWEEN)):
        if where.subjects and others and len(subjects) * len(others) <= PAIRS:
            pairs = product(subjects, known(others))
            return [[pair(scope, kind, *one) for one in pairs]], [layout.HAS_PAIR]
    for ids, edge in (
        (where.subjects, layout.HAS_SUBJECT),
        (where.objects, layout.HAS_OBJECT),
        (where.predicates, layout.HAS_PREDICATE),
    ):
        if ids:
            return [vids(scope, Kind.ENTITY, ids)], [edge]
    found = await shelves(sessions, scope, Kind.STATEMENTS)
    return grouped(found, after.created_at if after else 0, at.known_at), [layout.ON_SHELF]


def _matches(view: StatementView, where: StatementFilter, at: AsOf) -> bool:
    """All of a filter but `invalidated_by`, of a view with a span as asked."""
    statement = view.statement
    chosen = (
        (where.subjects, statement.subject),
        (where.predicates, statement.predicate),
        (where.objects, statement.object),
        (where.aspects, statement.aspect),
    )
    timeless = at.valid_at is None and at.since is None and at.until is None
    holds_still = any(span.invalid_at is None for span in view.spans)
    return (
        all(not wanted or value in wanted for wanted, value in chosen)
        and (not where.episodes or not set(where.episodes).isdisjoint(view.episodes))
        and where.contested in (None, any(span.contested for span in view.spans))
        and (where.include_ended or not timeless or where.invalidated_by is not None or holds_still)
    )
