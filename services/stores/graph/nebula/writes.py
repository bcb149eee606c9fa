"""Writes: a commit, in an order in which a crash at any point is repaired by applying it again.

First the shelves, by which an erasure finds everything; then vertices; then all that leads to them. What is
there stays: vertices and records are inserted if they don't exist. There is no transaction over several
sentences: readers ask for published revisions, and nothing of this one is published yet.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from services.domain.graph import EntityType, Span
from services.domain.ids import Revision
from services.domain.records import Record, Verdict
from services.domain.scope import Scope
from services.stores.errors import UnstorableText
from services.stores.graph.nebula import layout, statements, values
from services.stores.graph.nebula.layout import OPEN, SHELF_REVISIONS, UNKNOWN_START, Edge, Tag
from services.stores.graph.nebula.reads import Rows, edges, fetch
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import EdgeKey, Row, Sentence
from services.stores.graph.nebula.values import EMPTY_TEXTS, KeyedRow
from services.stores.graph.nebula.vids import Kind, Vid, is_id, key, pair, place_of, root, shelf, vid
from services.stores.graph.port import Commit, Revocation
from services.stores.sql.rows import is_storable

ROWS_A_SENTENCE = 100
BYTES_A_SENTENCE = 500_000
"""Of parameters and keys; a server refuses a sentence of more than 4 MB."""
KEYS_A_SENTENCE = 200
_KEY_BYTES = 160
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batch:
    """All rows of a commit, checked: vertices by vid, records by edge type."""

    scope: Scope
    revision: Revision
    entities: Mapping[Vid, Row]
    statements: Mapping[Vid, Row]
    hulls: Mapping[Vid, tuple[int, int]]
    """Of opened spans, by statement."""
    records: Mapping[str, Sequence[KeyedRow]]

    @property
    def named(self) -> list[Vid]:
        """Entities that its aliases name."""
        return [one.target for one, _ in self.records[layout.ALIAS.name]]


def batch(scope: Scope, commit: Commit) -> Batch:
    """Raises UnstorableText if a text can't be stored; ValueError for an id that is not of our alphabet."""
    hulls = _hulls(scope, commit.opened)
    none = (OPEN, UNKNOWN_START)
    facts = {vid(scope, Kind.STATEMENT, one.id): one for one in commit.statements}
    rows = Batch(
        scope=scope,
        revision=commit.revision,
        entities={
            vid(scope, Kind.ENTITY, one.id): values.entity_row(one) for one in reversed(commit.entities)
        },
        statements={one: values.statement_row(fact, hulls.get(one, none)) for one, fact in facts.items()},
        hulls=hulls,
        records=_records(scope, commit),
    )
    _check(rows, commit)
    return rows


def _records(scope: Scope, commit: Commit) -> dict[str, list[KeyedRow]]:
    judged = [one for one in commit.verdicts if one.episode is not None]
    return {
        layout.ALIAS.name: [
            (
                EdgeKey(key(scope, one.key), vid(scope, Kind.ENTITY, one.entity), place_of(one.type.value)),
                values.alias_row(one, commit.revision),
            )
            for one in commit.aliases
        ],
        layout.CLAIM.name: [values.claim_row(scope, one) for one in commit.claims],
        layout.ENDING.name: [values.end_row(scope, one) for one in commit.ends],
        layout.DENIAL.name: [values.denial_row(scope, one) for one in commit.denials],
        layout.VERDICT.name: [values.verdict_row(scope, one) for one in commit.verdicts],
        layout.JUDGED.name: [
            (
                EdgeKey(
                    vid(scope, Kind.STATEMENT, one.left),
                    vid(scope, Kind.EPISODE, one.episode or ""),
                    place_of(one.id),
                ),
                {"id": one.id},
            )
            for one in judged
        ],
        layout.REVOCATION.name: _revocations(scope, commit),
        layout.SPAN.name: [values.span_row(scope, one) for one in commit.opened],
        layout.CLOSING.name: [
            _to_itself(scope, one.statement, one.span, {"span": one.span, "known_to": commit.revision})
            for one in commit.closed
        ],
    }


def _check(rows: Batch, commit: Commit) -> None:
    keyed = [row for some in rows.records.values() for row in some]
    vertices = [*rows.entities.items(), *rows.statements.items()]
    told = [*values.texts(keyed), *values.texts(vertices)]
    # As JSON they would be stored escaped; they are refused like every other text.
    told += [("aliases", alias) for entity in commit.entities for alias in entity.aliases]
    for name, text in told:
        if not is_storable(text):
            raise UnstorableText(f"{name} holds NUL or a lone surrogate")
    for _, row in vertices:
        for name in ("subject", "predicate", "object"):
            if row.get(name) and not is_id(str(row[name])):
                raise ValueError(f"{name} is not an id")


def _revocations(scope: Scope, commit: Commit) -> list[KeyedRow]:
    """Those of the commit, and of records that come revoked already (an import)."""
    said: list[Record] = [*commit.claims, *commit.ends, *commit.denials, *commit.verdicts]
    found: dict[str, KeyedRow] = {}

    def add(revocation: Revocation, revision: Revision) -> None:
        row: Row = {"record": revocation.record, "revoked_at": revision}
        found.setdefault(revocation.record, _to_itself(scope, revocation.statement, revocation.record, row))

    for record in said:
        if record.revoked_at is not None:
            statement = record.left if isinstance(record, Verdict) else record.statement
            add(Revocation(record.id, statement), record.revoked_at)
    for revocation in commit.revocations:
        add(revocation, commit.revision)
    return list(found.values())


def _to_itself(scope: Scope, statement: str, about: str, row: Row) -> KeyedRow:
    one = vid(scope, Kind.STATEMENT, statement)
    return EdgeKey(one, one, place_of(about)), row


def _hulls(scope: Scope, opened: Sequence[Span]) -> dict[Vid, tuple[int, int]]:
    hulls: dict[Vid, tuple[int, int]] = {}
    for span in opened:
        one = vid(scope, Kind.STATEMENT, span.statement)
        first, last = hulls.get(one, (OPEN, UNKNOWN_START))
        start, end = values.held(span)
        hulls[one] = min(first, start), max(last, end)
    return hulls


async def write(sessions: Sessions, rows: Batch) -> None:
    """Everything of a commit. Raises StoreUnavailable; then some of it may be written."""
    known = await fetch(sessions, layout.ENTITY, rows.entities)
    facts = await fetch(sessions, layout.STATEMENT, [*rows.statements, *rows.hulls])
    # What is there was created when it says; everything that tells its age goes by that.
    entities = {one: known.get(one, dict(row)) for one, row in rows.entities.items()}
    stored = {one: facts.get(one, dict(row)) for one, row in rows.statements.items()}

    await _shelve(sessions, rows.scope, entities, stored)
    await sessions.send_all(
        [
            *_inserts(layout.ENTITY, {one: row for one, row in rows.entities.items() if one not in known}),
            *_inserts(
                layout.STATEMENT, {one: row for one, row in rows.statements.items() if one not in facts}
            ),
        ]
    )
    await sessions.update_all([*_restored(rows, known, facts), *_widened(rows, facts)])
    await sessions.send_all([*_joined(rows.scope, stored), *await _told(sessions, rows, facts)])
    await _drop_forgotten_aliases(sessions, rows)


async def _shelve(sessions: Sessions, scope: Scope, entities: Rows, facts: Rows) -> None:
    shelved: list[KeyedRow] = []
    numbers: dict[Vid, int] = {}
    for found in (entities, facts):
        for one, row in found.items():
            number = row["created_at"] // SHELF_REVISIONS
            place = shelf(scope, _kind(row), number)
            numbers[place] = number
            shelved.append((EdgeKey(one, place, row["created_at"]), {}))
    hung: list[KeyedRow] = [(EdgeKey(root(scope), place, number), {}) for place, number in numbers.items()]
    await sessions.send_all(inserts(layout.HAS_SHELF, hung))
    await sessions.send_all(inserts(layout.ON_SHELF, shelved))


def _kind(row: Row) -> Kind:
    if "subject" in row:
        return Kind.STATEMENTS
    return Kind.PREDICATES if row["type"] == EntityType.PREDICATE.value else Kind.THINGS


def _joined(scope: Scope, facts: Rows) -> Iterable[Sentence]:
    """The edges of statements to their nodes and pairs."""
    found: dict[Edge, list[KeyedRow]] = {edge: [] for edge in layout.JOINS}
    for one, row in facts.items():
        age, subject, predicate, target = (
            row[name] for name in ("created_at", "subject", "predicate", "object")
        )

        def join(edge: Edge, place: Vid, one: Vid = one, age: int = age) -> None:
            found[edge].append((EdgeKey(one, place, age), {}))

        join(layout.HAS_SUBJECT, vid(scope, Kind.ENTITY, subject))
        join(layout.HAS_PREDICATE, vid(scope, Kind.ENTITY, predicate))
        join(layout.HAS_PAIR, pair(scope, Kind.SLOT, subject, predicate))
        if target:
            join(layout.HAS_OBJECT, vid(scope, Kind.ENTITY, target))
            join(layout.HAS_PAIR, pair(scope, Kind.BETWEEN, subject, target))
    for edge, keyed in found.items():
        yield from inserts(edge, keyed)


async def _told(sessions: Sessions, rows: Batch, facts: Rows) -> list[Sentence]:
    """Records and spans; of spans those that no statement has yet under the same id, whatever ended them."""
    spanned = await edges(sessions, [one for one in rows.hulls if one in facts], [layout.SPAN])
    there = {(edge.source, edge.row["id"]) for edge in spanned}
    sentences: list[Sentence] = []
    for edge in layout.EDGES:
        keyed = rows.records.get(edge.name, ())
        if edge is layout.SPAN:
            keyed = [(one, row) for one, row in keyed if (one.source, row["id"]) not in there]
        sentences += inserts(edge, keyed)
    return sentences


def _restored(rows: Batch, known: Rows, facts: Rows) -> Iterable[Sentence]:
    """Texts that an earlier revision forgot come back."""
    for tag, told, there in (
        (layout.ENTITY, rows.entities, known),
        (layout.STATEMENT, rows.statements, facts),
    ):
        for one, row in told.items():
            if one in there and 0 <= there[one]["forgotten_at"] < rows.revision:
                texts = {name: row[name] for name in EMPTY_TEXTS[tag.name]}
                yield statements.restore(tag, one, texts, rows.revision)


def _widened(rows: Batch, facts: Rows) -> Iterable[Sentence]:
    for one, (start, end) in rows.hulls.items():
        if one in facts and start < facts[one]["hull_from"]:
            yield statements.widen_from(one, start)
        if one in facts and end > facts[one]["hull_to"]:
            yield statements.widen_to(one, end)


async def _drop_forgotten_aliases(sessions: Sessions, rows: Batch) -> None:
    """A commit that is applied late must not name again what a later revision forgot."""
    nodes = await fetch(sessions, layout.ENTITY, rows.named)
    await drop_aliases(sessions, [one for one, row in nodes.items() if row["forgotten_at"] >= rows.revision])


async def drop_aliases(sessions: Sessions, nodes: Sequence[Vid]) -> None:
    """All aliases of some entities."""
    found = await edges(sessions, nodes, [layout.ALIAS], reversely=True)
    await sessions.send_all(deletions(layout.ALIAS, [edge.key for edge in found]))


def deletions(edge: Edge, keys: Sequence[EdgeKey]) -> Iterable[Sentence]:
    for begin in range(0, len(keys), KEYS_A_SENTENCE):
        yield statements.delete_edges(edge, keys[begin : begin + KEYS_A_SENTENCE])


def inserts(edge: Edge, rows: Sequence[KeyedRow], *, anew: bool = False) -> Iterable[Sentence]:
    """Sentences that insert edges, none too long; of several rows with one key the first counts."""
    distinct = dict(reversed(rows))
    for some in _portions(list(reversed(distinct.items()))):
        yield statements.insert_edges(edge, some, anew=anew)


def _inserts(tag: Tag, rows: Mapping[Vid, Row]) -> Iterable[Sentence]:
    for some in _portions(list(rows.items())):
        yield statements.insert_vertices(tag, some)


def _portions(rows: Sequence[tuple[T, Row]]) -> Iterable[list[tuple[T, Row]]]:
    some: list[tuple[T, Row]] = []
    size = 0
    for one, row in rows:
        more = _KEY_BYTES + sum(
            len(value.encode()) if isinstance(value, str) else 16 for value in row.values()
        )
        if some and (len(some) >= ROWS_A_SENTENCE or size + more > BYTES_A_SENTENCE):
            yield some
            some, size = [], 0
        some.append((one, row))
        size += more
    if some:
        yield some
