"""Joins: what joins to a node, a pair or a shelf, read in order and a window at a time.

The server reads all edges of an anchor for each window, keys alone, and answers the first of them: a window
of a hub costs by its degree, and travels by its size. Shelves bound what a page of a whole graph reads.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace

from services.domain.ids import Revision, StatementId
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.graph.nebula import layout, statements
from services.stores.graph.nebula.layout import SHELF_REVISIONS, Edge
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import Position, Window
from services.stores.graph.nebula.vids import Kind, Vid, id_of, kind_of, root, shelf_number

ANCHORS_A_SENTENCE = 200
LEAST_WINDOW = 64
"""Far more than the anchors that one member can have: a window always gets beyond its first one."""
LARGEST_WINDOW = 2_000


@dataclass(frozen=True, slots=True)
class Member:
    """A statement or an entity, when it was created, and to which of the anchors asked it joins."""

    position: Position
    anchors: frozenset[Vid]

    @property
    def statement(self) -> StatementId:
        return StatementId(id_of(self.position.member))


async def windows(
    sessions: Sessions, groups: Sequence[Sequence[Vid]], types: Sequence[Edge], first: Window
) -> AsyncIterator[list[Member]]:
    """All members of the anchors of each group, group after group, each once a group, in order.

    `first` is the first window asked for; later ones are larger. Groups must be in their members' order.
    """
    size = max(first.size, LEAST_WINDOW)
    for group in groups:
        asked, more = replace(first, size=size), bool(group)
        while more:
            found, more = await _window(sessions, group, types, asked)
            if found:
                yield found
                size = min(2 * size, max(LARGEST_WINDOW, first.size))
                asked = replace(asked, size=size, after=found[-1].position)


async def _window(
    sessions: Sessions, anchors: Sequence[Vid], types: Sequence[Edge], window: Window
) -> tuple[list[Member], bool]:
    """The next members, and whether there may be more."""
    answers = await sessions.send_all(
        statements.members(chunk, edge, window)
        for chunk in in_chunks(anchors, ANCHORS_A_SENTENCE)
        for edge in types
    )
    found: dict[Position, set[Vid]] = {}
    cuts: list[Position] = []
    for answer in answers:
        for created_at, member, anchor in answer.rows:
            position = Position(created_at, Vid(member))
            found.setdefault(position, set()).add(Vid(anchor))
        if len(answer.rows) >= window.size:
            # Of its last member some anchors may be cut off; other chunks may know members beyond it.
            cuts.append(position)
    ordered = sorted(found, key=_order, reverse=window.newest_first)
    if cuts:
        cut = (max if window.newest_first else min)(map(_order, cuts))
        ordered = [
            one for one in ordered if (_order(one) > cut if window.newest_first else _order(one) < cut)
        ]
        assert ordered, "a window that holds less than one member"
    return [Member(one, frozenset(found[one])) for one in ordered], bool(cuts)


def _order(position: Position) -> tuple[int, str]:
    return position.created_at, position.member


async def shelves(sessions: Sessions, scope: Scope, *kinds: Kind) -> list[Vid]:
    """The shelves of these kinds, in the order of their numbers."""
    answer = await sessions.send(statements.edge_keys([root(scope)], [layout.HAS_SHELF]))
    found = [Vid(target) for _, _, target, _ in answer.rows]
    return sorted((one for one in found if kind_of(one) in kinds), key=lambda one: (shelf_number(one), one))


def grouped(found: Iterable[Vid], since: int = 0, until: int | None = None) -> list[list[Vid]]:
    """Shelves (of one kind, in order) that may hold what these revisions made: one, then two, four, eight…

    A small graph's pages then read few shelves, and a scan of all of a graph of many asks seldom.
    """
    rest = [
        one
        for one in found
        if shelf_number(one) >= since // SHELF_REVISIONS
        and (until is None or shelf_number(one) <= until // SHELF_REVISIONS)
    ]
    groups: list[list[Vid]] = []
    while rest:
        size = min(2 ** len(groups), 16)
        groups.append(rest[:size])
        rest = rest[size:]
    return groups


async def all_members(
    sessions: Sessions, anchors: Sequence[Vid], types: Sequence[Edge], until: Revision | None = None
) -> list[Member]:
    """Everything that joins to these anchors, in order."""
    window = Window(LARGEST_WINDOW, until=until)
    return [one async for found in windows(sessions, [anchors], types, window) for one in found]
