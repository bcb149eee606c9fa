"""Forgetting and erasing: texts that go, and graphs that go altogether.

An edge lies at both its ends, and a failure may leave one half. So texts are emptied by writing records anew,
which repeats until both halves are written; and an erasure empties texts first, deletes edges by the keys it
has read, then vertices, and the edge to the shelf last, by which the next attempt finds what may be left.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from services.domain.graph import Entity, Statement
from services.domain.ids import EntityId, StatementId
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.graph.nebula import bodies, joins, layout, statements
from services.stores.graph.nebula.joins import Member
from services.stores.graph.nebula.reads import (
    VIDS_A_SENTENCE,
    StoredEntity,
    StoredStatement,
    edges,
    stored_entities,
    stored_statements,
)
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import EdgeKey, Sentence, Window
from services.stores.graph.nebula.vids import Kind, Vid, kind_of, root, shelf_number, vid, vids
from services.stores.graph.nebula.writes import deletions, drop_aliases, joins_of, keys, shelf_key, silence
from services.stores.graph.port import Forgetting

_TEXTED = (*layout.RECORDS, layout.VERDICT)


async def forget(sessions: Sessions, scope: Scope, forgetting: Forgetting) -> None:
    """Empties the text of statements with their records, of records alone, and of entities with aliases."""
    retold = dict(forgetting.retold)
    facts = await stored_statements(sessions, scope, [*forgetting.statements, *retold])
    await sessions.update_all(_forgotten_statements(scope, forgetting, facts))
    nodes = await stored_entities(sessions, scope, forgetting.entities)
    await sessions.update_all(_forgotten_entities(scope, forgetting, nodes))
    await drop_aliases(sessions, scope, vids(scope, Kind.ENTITY, forgetting.entities))
    await sessions.update_all(_retold(scope, facts, retold))

    gone = vids(scope, Kind.STATEMENT, forgetting.statements)
    await silence(sessions, scope, await edges(sessions, gone, layout.RECORDS))
    sides = vids(scope, Kind.STATEMENT, [*forgetting.statements, *retold])
    for reversely in (False, True):
        await silence(sessions, scope, await edges(sessions, sides, [layout.VERDICT], reversely=reversely))
    await _empty_named(sessions, scope, forgetting)


def _forgotten_statements(
    scope: Scope, forgetting: Forgetting, facts: Mapping[StatementId, StoredStatement]
) -> Iterable[Sentence]:
    for id in dict.fromkeys(forgetting.statements):
        if id in facts:
            body = bodies.body_of(bodies.emptied(facts[id].statement))
            place = vid(scope, Kind.STATEMENT, id)
            yield statements.forget(layout.STATEMENT, place, body, forgetting.revision)


def _forgotten_entities(
    scope: Scope, forgetting: Forgetting, nodes: Mapping[EntityId, StoredEntity]
) -> Iterable[Sentence]:
    for id, row in nodes.items():
        body = bodies.body_of(bodies.emptied(row.entity))
        yield statements.forget(layout.ENTITY, vid(scope, Kind.ENTITY, id), body, forgetting.revision)


def _retold(
    scope: Scope, facts: Mapping[StatementId, StoredStatement], retold: Mapping[StatementId, str]
) -> Iterable[Sentence]:
    for id, sentence in retold.items():
        if id in facts:
            body = bodies.body_of(replace(facts[id].statement, fact=sentence))
            yield statements.retell(vid(scope, Kind.STATEMENT, id), body)


async def _empty_named(sessions: Sessions, scope: Scope, forgetting: Forgetting) -> None:
    named = {one.record for one in forgetting.records}
    about = vids(scope, Kind.STATEMENT, [one.statement for one in forgetting.records])
    found = await edges(sessions, about, _TEXTED)
    await silence(
        sessions,
        scope,
        [one for one in found if isinstance(one, Claim | End | Denial | Verdict) and one.id in named],
    )


async def erase(sessions: Sessions, scope: Scope) -> None:
    """Deletes everything that a scope's shelves lead to, statements first, then the shelves."""
    order = (Kind.STATEMENTS, Kind.THINGS, Kind.PREDICATES)
    shelves = await joins.shelves(sessions, scope, *order)
    for shelf in sorted(shelves, key=lambda one: order.index(kind_of(one))):
        window = Window(VIDS_A_SENTENCE)
        async for members in joins.windows(sessions, [[shelf]], [layout.ON_SHELF], window):
            for some in in_chunks(members, VIDS_A_SENTENCE):
                await _erase_members(sessions, scope, shelf, some)
        hung = EdgeKey(root(scope), shelf, shelf_number(shelf))
        await sessions.send(statements.delete_edges(layout.HAS_SHELF, [hung]))


async def purge(
    sessions: Sessions,
    scope: Scope,
    gone_statements: Sequence[StatementId],
    gone_entities: Sequence[EntityId],
) -> None:
    """Deletes statements, then entities, with all that leads to them; vertices last, for the next attempt."""
    facts = await stored_statements(sessions, scope, gone_statements)
    for some in in_chunks(facts.values(), VIDS_A_SENTENCE):
        told = [row.statement for row in some]
        await _strip_statements(sessions, scope, told)
        await _take_off(sessions, scope, told)
    nodes = await stored_entities(sessions, scope, gone_entities)
    for chunk in in_chunks(nodes.values(), VIDS_A_SENTENCE):
        things = [row.entity for row in chunk]
        await drop_aliases(sessions, scope, vids(scope, Kind.ENTITY, [one.id for one in things]))
        await _take_off(sessions, scope, things)


async def _take_off(sessions: Sessions, scope: Scope, nodes: Sequence[Statement | Entity]) -> None:
    """Takes nodes off their shelves, and deletes them."""
    await sessions.send_all(deletions(layout.ON_SHELF, [shelf_key(scope, node) for node in nodes]))
    kind = Kind.STATEMENT if isinstance(nodes[0], Statement) else Kind.ENTITY
    await sessions.send(statements.delete_vertices(vids(scope, kind, [node.id for node in nodes])))


async def rows(sessions: Sessions, scope: Scope) -> Mapping[str, int]:
    """Statements and entities on the scope's shelves, and the shelves."""
    found: Counter[str] = Counter()
    order = (Kind.STATEMENTS, Kind.THINGS, Kind.PREDICATES)
    for shelf in await joins.shelves(sessions, scope, *order):
        found["shelves"] += 1
        members = await joins.all_members(sessions, [shelf], [layout.ON_SHELF])
        found["statements" if kind_of(shelf) is Kind.STATEMENTS else "entities"] += len(members)
    return {kind: count for kind, count in found.items() if count}


async def _strip_statements(sessions: Sessions, scope: Scope, told: Sequence[Statement]) -> None:
    """Deletes what leads from statements, and the verdicts that lead to them; texts first.

    Joins by what the statements say, not by what is read: of an edge that was torn one half can't be seen.
    """
    gone = vids(scope, Kind.STATEMENT, [one.id for one in told])
    await silence(sessions, scope, await edges(sessions, gone, _TEXTED))
    await silence(sessions, scope, await edges(sessions, gone, [layout.VERDICT], reversely=True))
    for found in (
        await keys(sessions, gone, layout.FROM_STATEMENT),
        await keys(sessions, gone, [layout.VERDICT], reversely=True),
        joins_of(scope, told),
    ):
        await sessions.send_all(
            sentence for edge, some in found.items() for sentence in deletions(edge, some)
        )


async def _erase_members(sessions: Sessions, scope: Scope, shelf: Vid, members: Sequence[Member]) -> None:
    gone = [member.position.member for member in members]
    if kind_of(shelf) is Kind.STATEMENTS:
        facts = await stored_statements(sessions, scope, [member.statement for member in members])
        await _strip_statements(sessions, scope, [row.statement for row in facts.values()])
    else:
        await drop_aliases(sessions, scope, gone)
    await sessions.send(statements.delete_vertices(gone))
    shelved = [EdgeKey(one.position.member, shelf, one.position.created_at) for one in members]
    await sessions.send_all(deletions(layout.ON_SHELF, shelved))
