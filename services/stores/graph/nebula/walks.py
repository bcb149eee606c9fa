"""The walk: one hop at a time from here, both directions, newest first, never through a predicate.

Of a level's candidates the newest are asked for first, keys alone, which a hub answers soonest; they are read
as views and checked exactly, until the level is full. Where a world time is asked and the first window does
not fill a level, the server sieves the rest by hulls: most of an old hub's statements then never travel.
"""

from collections.abc import AsyncIterator, Collection, Sequence

from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope
from services.stores.graph.nebula import joins, layout, reads
from services.stores.graph.nebula.joins import Member
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import Window
from services.stores.graph.nebula.vids import Kind, vids
from services.stores.graph.port import AsOf, StatementView, Step, Together, with_groups
from services.stores.graph.steps import beyond, via

LARGEST_CHECK = 500
"""Views that are read at once to be checked."""
ENDS = (layout.HAS_SUBJECT, layout.HAS_OBJECT)


async def walk(
    sessions: Sessions,
    scope: Scope,
    seeds: Sequence[EntityId],
    at: AsOf,
    max_hops: int,
    per_level: int,
    together: Together,
) -> list[Step]:
    steps: list[Step] = []
    met: set[StatementId] = set()
    frontier = with_groups(seeds, together)
    visited = set(frontier)
    for hop in range(1, max_hops + 1):
        if not frontier or per_level < 1:
            break
        level = await _level(sessions, scope, frontier, at, met, per_level)
        steps += [Step(view, hop, via(view, frontier)) for view in level]
        met.update(view.statement.id for view in level)
        frontier = with_groups(beyond(level, visited), together)
        visited |= frontier
    return steps


async def _level(
    sessions: Sessions,
    scope: Scope,
    frontier: Collection[EntityId],
    at: AsOf,
    met: Collection[StatementId],
    cap: int,
) -> list[StatementView]:
    """The newest statements with a node in the frontier that were not met before, newest first."""
    level: list[StatementView] = []
    async for members in _newest(sessions, scope, frontier, at, cap + len(met)):
        ids = [member.statement for member in members if member.statement not in met]
        while ids and len(level) < cap:
            # Most are as asked: few more than are missing are read.
            size = min(cap - len(level) + joins.LEAST_WINDOW // 4, LARGEST_CHECK)
            some, ids = ids[:size], ids[size:]
            level += [view for view in await reads.views(sessions, scope, some, at) if view.spans]
        if len(level) >= cap:
            break
    return level[:cap]


async def _newest(
    sessions: Sessions, scope: Scope, frontier: Collection[EntityId], at: AsOf, size: int
) -> AsyncIterator[list[Member]]:
    anchors = vids(scope, Kind.ENTITY, sorted(frontier))
    window = Window(size, newest_first=True, until=at.known_at)
    timeless = at.valid_at is None and at.since is None and at.until is None
    async for members in joins.windows(sessions, [anchors], ENDS, window):
        yield members
        if not timeless:
            sieved = Window(size, True, at.known_at, members[-1].position, reads.window(at))
            async for some in joins.windows(sessions, [anchors], ENDS, sieved):
                yield some
            return
