"""Writes: a commit, in an order in which a crash at any point is repaired by applying it again.

First the shelves, by which an erasure finds everything; then vertices; then all that leads to them. What is
there stays: vertices and records are inserted if they don't exist. There is no transaction over several
sentences: readers ask for published revisions, and nothing of this one is published yet.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from services.domain.graph import Entity, EntityType, Literal, Span, Statement
from services.domain.ids import EntityId, Revision, SpanId, StatementId
from services.domain.records import Record, Verdict
from services.domain.scope import Scope
from services.stores.graph.nebula import bodies, layout, statements
from services.stores.graph.nebula.bodies import Closed, Judged, Node, Revoked, Sayable, Told
from services.stores.graph.nebula.layout import NEVER, OPEN, SHELF_REVISIONS, UNKNOWN_START, Edge, Tag
from services.stores.graph.nebula.reads import (
    StoredEntity,
    StoredStatement,
    edges,
    stored_entities,
    stored_statements,
)
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import EdgeKey, Row, Sentence
from services.stores.graph.nebula.vids import Kind, Vid, pair, root, shelf, vid, vids
from services.stores.graph.port import Alias, Commit

ROWS_A_SENTENCE = 200
BYTES_A_SENTENCE = 500_000
"""Of bodies and keys; a server refuses a sentence of more than 4 MB."""
_KEY_BYTES = 180

T = TypeVar("T")
K = TypeVar("K", Vid, EdgeKey)
KeyedRow = tuple[EdgeKey, Row]


@dataclass(frozen=True, slots=True)
class Batch:
    """All of a commit, checked, as it is stored."""

    scope: Scope
    revision: Revision
    entities: Mapping[EntityId, Entity]
    statements: Mapping[StatementId, Statement]
    aliases: Sequence[Alias]
    spans: Sequence[Span]
    others: Sequence[Told]
    """Records, revocations and closings."""
    hulls: Mapping[StatementId, tuple[int, int]]
    """Of opened spans, by statement."""


def batch(scope: Scope, commit: Commit) -> Batch:
    """Raises UnstorableText if a text can't be stored; ValueError for an id that is not of our alphabet."""
    said: list[Record] = [*commit.claims, *commit.ends, *commit.denials, *commit.verdicts]
    judged = [Judged(one.id, one.left, one.episode) for one in commit.verdicts if one.episode is not None]
    rows = Batch(
        scope=scope,
        revision=commit.revision,
        # Of several under one id the first counts.
        entities={one.id: one for one in reversed(commit.entities)},
        statements={one.id: one for one in reversed(commit.statements)},
        aliases=[replace(one, recorded_at=commit.revision) for one in commit.aliases],
        spans=commit.opened,
        others=[
            *(replace(record, revoked_at=None) for record in said),
            *judged,
            *_revoked(commit, said),
            *(Closed(one.span, one.statement, commit.revision) for one in commit.closed),
        ],
        hulls=_hulls(commit.opened),
    )
    nodes: list[Node] = [*rows.entities.values(), *rows.statements.values()]
    for node in nodes:
        bodies.check(node)
        _named(scope, node)
    told: list[Told] = [*rows.aliases, *rows.spans, *rows.others]
    for one in told:
        bodies.check(one)
        bodies.key_of(scope, one)
    return rows


def _named(scope: Scope, node: Node) -> list[Vid]:
    """The vids of a node and of those that it names."""
    if isinstance(node, Entity):
        return [vid(scope, Kind.ENTITY, node.id)]
    named = [node.subject, node.predicate]
    if not isinstance(node.object, Literal):
        named.append(node.object)
    return [vid(scope, Kind.STATEMENT, node.id), *(vid(scope, Kind.ENTITY, one) for one in named)]


def _revoked(commit: Commit, said: Iterable[Record]) -> list[Revoked]:
    """Those of the commit, and of records that come revoked already (an import), which go first."""
    found = [
        Revoked(
            record.id, record.left if isinstance(record, Verdict) else record.statement, record.revoked_at
        )
        for record in said
        if record.revoked_at is not None
    ]
    return [*found, *(Revoked(one.record, one.statement, commit.revision) for one in commit.revocations)]


def _hulls(opened: Sequence[Span]) -> dict[StatementId, tuple[int, int]]:
    hulls: dict[StatementId, tuple[int, int]] = {}
    for span in opened:
        first, last = hulls.get(span.statement, (OPEN, UNKNOWN_START))
        start, end = bodies.held(span)
        hulls[span.statement] = min(first, start), max(last, end)
    return hulls


async def write(sessions: Sessions, rows: Batch) -> None:
    """Everything of a commit. Raises StoreUnavailable; then some of it may be written."""
    scope = rows.scope
    known = await stored_entities(sessions, scope, rows.entities)
    facts = await stored_statements(sessions, scope, [*rows.statements, *rows.hulls])
    # What is there was created when it says; everything that tells its age goes by that.
    nodes = [known[id].entity if id in known else one for id, one in rows.entities.items()]
    stored = [facts[id].statement if id in facts else one for id, one in rows.statements.items()]

    await _shelve(sessions, scope, [*nodes, *stored])
    await sessions.send_all(_vertices(rows, known, facts))
    await sessions.update_all([*_restored(rows, known, facts), *_widened(rows, facts)])
    told = [*rows.others, *rows.aliases, *await _new_spans(sessions, rows, facts)]
    await sessions.send_all([*_joined(scope, stored), *_insert_told(scope, told)])
    await _drop_forgotten_aliases(sessions, rows)


async def _shelve(sessions: Sessions, scope: Scope, nodes: Iterable[Node]) -> None:
    shelved: list[KeyedRow] = []
    numbers: dict[Vid, int] = {}
    for node in nodes:
        number = node.created_at // SHELF_REVISIONS
        place = shelf(scope, _shelf_kind(node), number)
        numbers[place] = number
        shelved.append((EdgeKey(_named(scope, node)[0], place, node.created_at), {}))
    hung: list[KeyedRow] = [(EdgeKey(root(scope), place, number), {}) for place, number in numbers.items()]
    await sessions.send_all(_inserts(layout.HAS_SHELF, hung))
    await sessions.send_all(_inserts(layout.ON_SHELF, shelved))


def shelf_key(scope: Scope, node: Node) -> EdgeKey:
    """The edge from a node to its shelf."""
    place = shelf(scope, _shelf_kind(node), node.created_at // SHELF_REVISIONS)
    return EdgeKey(_named(scope, node)[0], place, node.created_at)


def _shelf_kind(node: Node) -> Kind:
    if isinstance(node, Statement):
        return Kind.STATEMENTS
    return Kind.PREDICATES if node.type is EntityType.PREDICATE else Kind.THINGS


def _vertices(
    rows: Batch, known: Mapping[EntityId, StoredEntity], facts: Mapping[StatementId, StoredStatement]
) -> Iterable[Sentence]:
    """Those that are not there."""
    scope, none = rows.scope, (OPEN, UNKNOWN_START)
    entities: list[tuple[Vid, Row]] = [
        (vid(scope, Kind.ENTITY, id), {"body": bodies.body_of(one), "forgotten_at": NEVER})
        for id, one in rows.entities.items()
        if id not in known
    ]
    told: list[tuple[Vid, Row]] = []
    for id, one in rows.statements.items():
        if id not in facts:
            start, end = rows.hulls.get(id, none)
            row: Row = {
                "body": bodies.body_of(one),
                "forgotten_at": NEVER,
                "hull_from": start,
                "hull_to": end,
            }
            told.append((vid(scope, Kind.STATEMENT, id), row))
    for tag, some in ((layout.ENTITY, entities), (layout.STATEMENT, told)):
        for portion in _portions(some):
            yield statements.insert_vertices(tag, portion)


def _joined(scope: Scope, facts: Iterable[Statement]) -> Iterable[Sentence]:
    for edge, joins in joins_of(scope, facts).items():
        yield from _inserts(edge, [(key, {}) for key in joins])


def joins_of(scope: Scope, facts: Iterable[Statement]) -> dict[Edge, list[EdgeKey]]:
    """The edges of statements to their nodes and pairs, by type."""
    found: dict[Edge, list[EdgeKey]] = defaultdict(list)
    for one in facts:
        fact = vid(scope, Kind.STATEMENT, one.id)
        places = [
            (layout.HAS_SUBJECT, vid(scope, Kind.ENTITY, one.subject)),
            (layout.HAS_PREDICATE, vid(scope, Kind.ENTITY, one.predicate)),
            (layout.HAS_PAIR, pair(scope, Kind.SLOT, one.subject, one.predicate)),
        ]
        if not isinstance(one.object, Literal):
            places.append((layout.HAS_OBJECT, vid(scope, Kind.ENTITY, one.object)))
            places.append((layout.HAS_PAIR, pair(scope, Kind.BETWEEN, one.subject, one.object)))
        for edge, place in places:
            found[edge].append(EdgeKey(fact, place, one.created_at))
    return found


async def _new_spans(
    sessions: Sessions, rows: Batch, facts: Mapping[StatementId, StoredStatement]
) -> list[Span]:
    """Those that no statement has yet under the same id, whatever ended them.

    One that is there by the same edge goes along: its other end may be missing.
    """
    asked = vids(rows.scope, Kind.STATEMENT, [id for id in rows.hulls if id in facts])
    there = {one.id: one for one in await edges(sessions, asked, [layout.SPAN]) if isinstance(one, Span)}
    new: dict[SpanId, Span] = {}
    for span in rows.spans:
        old = there.get(span.id, span)
        if bodies.key_of(rows.scope, old) == bodies.key_of(rows.scope, span):
            new.setdefault(span.id, span)
    return list(new.values())


def _restored(
    rows: Batch, known: Mapping[EntityId, StoredEntity], facts: Mapping[StatementId, StoredStatement]
) -> Iterable[Sentence]:
    """Texts that an earlier revision forgot come back."""

    def restore(tag: Tag, place: Vid, old: Node, new: Node) -> Sentence:
        body = bodies.body_of(bodies.restored(old, new))
        return statements.restore(tag, place, body, rows.revision)

    for id, entity in known.items():
        if 0 <= entity.forgotten_at < rows.revision:
            place = vid(rows.scope, Kind.ENTITY, id)
            yield restore(layout.ENTITY, place, entity.entity, rows.entities[id])
    for fact, row in facts.items():
        if fact in rows.statements and 0 <= row.forgotten_at < rows.revision:
            place = vid(rows.scope, Kind.STATEMENT, fact)
            yield restore(layout.STATEMENT, place, row.statement, rows.statements[fact])


def _widened(rows: Batch, facts: Mapping[StatementId, StoredStatement]) -> Iterable[Sentence]:
    for id, (start, end) in rows.hulls.items():
        if id in facts:
            place, hull = vid(rows.scope, Kind.STATEMENT, id), facts[id].hull
            if start < hull[0]:
                yield statements.widen_from(place, start)
            if end > hull[1]:
                yield statements.widen_to(place, end)


async def _drop_forgotten_aliases(sessions: Sessions, rows: Batch) -> None:
    """A commit that is applied late must not name again what a later revision forgot."""
    nodes = await stored_entities(sessions, rows.scope, [alias.entity for alias in rows.aliases])
    forgotten = [id for id, row in nodes.items() if row.forgotten_at >= rows.revision]
    await drop_aliases(sessions, rows.scope, vids(rows.scope, Kind.ENTITY, forgotten))


async def drop_aliases(sessions: Sessions, scope: Scope, nodes: Sequence[Vid]) -> None:
    """All aliases of some entities."""
    await silence(sessions, scope, await edges(sessions, nodes, [layout.ALIAS], reversely=True))
    found = await keys(sessions, nodes, [layout.ALIAS], reversely=True)
    await sessions.send_all(deletions(layout.ALIAS, found[layout.ALIAS]))


async def silence(sessions: Sessions, scope: Scope, found: Iterable[Told]) -> None:
    """Writes what is told anew without its texts, at both ends of its edges."""
    rows: dict[Edge, list[KeyedRow]] = defaultdict(list)
    for one in found:
        if isinstance(one, Sayable):
            silent = bodies.silent(one)
            # Silent at this end need not be so at the other; an alias that is silent has lost its key.
            if silent != one or not isinstance(one, Alias):
                rows[bodies.edge_of(one)].append(
                    (bodies.key_of(scope, one), {"body": bodies.body_of(silent)})
                )
    await sessions.send_all(
        sentence for edge, keyed in rows.items() for sentence in _inserts(edge, keyed, anew=True)
    )


async def keys(
    sessions: Sessions, asked: Sequence[Vid], types: Sequence[Edge], *, reversely: bool = False
) -> dict[Edge, list[EdgeKey]]:
    """Which edges of these types there are, by type."""
    named = {edge.name: edge for edge in types}
    answers = await sessions.send_all(
        statements.edge_keys(chunk, types, reversely=reversely) for chunk in _chunks(asked)
    )
    found: dict[Edge, list[EdgeKey]] = {edge: [] for edge in types}
    for answer in answers:
        for type, source, target, place in answer.rows:
            found[named[type]].append(EdgeKey(Vid(source), Vid(target), place))
    return found


def deletions(edge: Edge, gone: Sequence[EdgeKey]) -> Iterable[Sentence]:
    return (statements.delete_edges(edge, chunk) for chunk in _chunks(gone))


def _insert_told(scope: Scope, found: Iterable[Told]) -> Iterable[Sentence]:
    """What is told, as edges."""
    rows: dict[Edge, list[KeyedRow]] = defaultdict(list)
    for one in found:
        rows[bodies.edge_of(one)].append((bodies.key_of(scope, one), {"body": bodies.body_of(one)}))
    for edge, keyed in rows.items():
        yield from _inserts(edge, keyed)


def _inserts(edge: Edge, rows: Sequence[KeyedRow], *, anew: bool = False) -> Iterable[Sentence]:
    """Sentences that insert edges, none too long; of several rows with one key the first counts."""
    distinct = dict(reversed(rows))
    for some in _portions(list(reversed(distinct.items()))):
        yield statements.insert_edges(edge, some, anew=anew)


def _portions(rows: Sequence[tuple[K, Row]]) -> Iterable[list[tuple[K, Row]]]:
    some: list[tuple[K, Row]] = []
    size = 0
    for one, row in rows:
        more = _KEY_BYTES + sum(len(value.encode()) for value in row.values() if isinstance(value, str))
        if some and (len(some) >= ROWS_A_SENTENCE or size + more > BYTES_A_SENTENCE):
            yield some
            some, size = [], 0
        some.append((one, row))
        size += more
    if some:
        yield some


def _chunks(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[begin : begin + ROWS_A_SENTENCE] for begin in range(0, len(items), ROWS_A_SENTENCE))
