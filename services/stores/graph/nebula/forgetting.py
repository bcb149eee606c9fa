"""Forgetting and erasing: texts that go, and graphs that go altogether.

An edge lies at both its ends, and a failure may leave one half. So texts are emptied by writing records anew,
which repeats until both halves are written; and an erasure empties texts first, deletes edges by the keys it
has read, then vertices, and the edge to the shelf last, by which the next attempt finds what may be left.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from services.domain.scope import Scope
from services.stores.graph.nebula import joins, layout, statements
from services.stores.graph.nebula.joins import Member
from services.stores.graph.nebula.layout import Edge
from services.stores.graph.nebula.reads import VIDS_A_SENTENCE, edges, fetch
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import EdgeKey, Window
from services.stores.graph.nebula.values import EMPTY_TEXTS, FoundEdge, KeyedRow
from services.stores.graph.nebula.vids import Kind, Vid, kind_of, root, shelf_number, vids
from services.stores.graph.nebula.writes import deletions, drop_aliases, inserts
from services.stores.graph.port import Forgetting
from services.stores.sql.rows import in_chunks

_TEXTED = (*layout.RECORDS, layout.VERDICT)


async def forget(sessions: Sessions, scope: Scope, forgetting: Forgetting) -> None:
    """Empties the text of statements with their records, of records alone, and of entities with aliases."""
    facts = vids(scope, Kind.STATEMENT, forgetting.statements)
    nodes = vids(scope, Kind.ENTITY, forgetting.entities)
    for tag, asked in ((layout.STATEMENT, facts), (layout.ENTITY, nodes)):
        there = await fetch(sessions, tag, asked)
        await sessions.update_all(
            statements.forget(tag, one, EMPTY_TEXTS[tag.name], forgetting.revision) for one in there
        )
    await drop_aliases(sessions, nodes)
    retold = {
        one: sentence for id, sentence in forgetting.retold for one in vids(scope, Kind.STATEMENT, [id])
    }
    await sessions.update_all(statements.retell(one, sentence) for one, sentence in retold.items())
    await _empty(sessions, await edges(sessions, facts, layout.RECORDS))
    await _empty_reasons(sessions, [*facts, *retold])
    await _empty_named(sessions, scope, forgetting)


async def _empty_named(sessions: Sessions, scope: Scope, forgetting: Forgetting) -> None:
    named = {one.record for one in forgetting.records}
    about = vids(scope, Kind.STATEMENT, [one.statement for one in forgetting.records])
    found = await edges(sessions, about, _TEXTED)
    await _empty(sessions, [edge for edge in found if edge.row["id"] in named])


async def _empty_reasons(sessions: Sessions, facts: Sequence[Vid]) -> None:
    """Of the verdicts on these statements, on whichever side."""
    for reversely in (False, True):
        await _empty(sessions, await edges(sessions, facts, [layout.VERDICT], reversely=reversely))


async def _empty(sessions: Sessions, found: Iterable[FoundEdge]) -> None:
    """Writes records anew without their texts."""
    types = {edge.name: edge for edge in _TEXTED}
    rows: dict[Edge, list[KeyedRow]] = defaultdict(list)
    for edge in found:
        texts = EMPTY_TEXTS.get(edge.type, {})
        if any(edge.row[name] for name in texts):
            rows[types[edge.type]].append((edge.key, edge.row | texts))
    await sessions.send_all(
        sentence for type, some in rows.items() for sentence in inserts(type, some, anew=True)
    )


async def erase(sessions: Sessions, scope: Scope) -> None:
    """Deletes everything that a scope's shelves lead to, statements first, then the shelves."""
    order = (Kind.STATEMENTS, Kind.THINGS, Kind.PREDICATES)
    shelves = await joins.shelves(sessions, scope, *order)
    for shelf in sorted(shelves, key=lambda one: order.index(kind_of(one))):
        window = Window(VIDS_A_SENTENCE)
        async for members in joins.windows(sessions, [[shelf]], [layout.ON_SHELF], window):
            for some in in_chunks(members, VIDS_A_SENTENCE):
                await _erase_members(sessions, shelf, some)
        hung = EdgeKey(root(scope), shelf, shelf_number(shelf))
        await sessions.send(statements.delete_edges(layout.HAS_SHELF, [hung]))


async def _erase_members(sessions: Sessions, shelf: Vid, members: Sequence[Member]) -> None:
    gone = [member.position.member for member in members]
    if kind_of(shelf) is Kind.STATEMENTS:
        found = await edges(sessions, gone, layout.FROM_STATEMENT)
        found += await edges(sessions, gone, [layout.VERDICT], reversely=True)
        await _empty(sessions, found)
        await _delete(sessions, found)
    else:
        await drop_aliases(sessions, gone)
    await sessions.send(statements.delete_vertices(gone))
    keys = [EdgeKey(one.position.member, shelf, one.position.created_at) for one in members]
    await sessions.send_all(deletions(layout.ON_SHELF, keys))


async def _delete(sessions: Sessions, found: Iterable[FoundEdge]) -> None:
    types = {edge.name: edge for edge in layout.EDGES}
    keys: dict[str, list[EdgeKey]] = defaultdict(list)
    for edge in found:
        keys[edge.type].append(edge.key)
    await sessions.send_all(
        sentence for name, some in keys.items() for sentence in deletions(types[name], some)
    )
