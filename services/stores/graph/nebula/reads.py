"""Reads by id: vertices, the edges of statements, views, slots, and what an episode says.

A batch of statements is read with one FETCH and one GO for each few hundred, and their entities with another.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from services.domain.graph import Entity, Literal, Span, Statement
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, SpanId, StatementId
from services.domain.instants import Instant, Interval
from services.domain.records import Claim, Denial, End, Record, Verdict
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.graph.nebula import bodies, joins, layout, statements
from services.stores.graph.nebula.bodies import Closed, Judged, Revoked, Told, held
from services.stores.graph.nebula.layout import OPEN, UNKNOWN_START, Edge
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.vids import Kind, Vid, is_id, key, pair, vids
from services.stores.graph.port import Alias, AsOf, NodePair, Records, StatementView

R = TypeVar("R", Claim, End, Denial, Verdict)

VIDS_A_SENTENCE = 250
VIEWED = (layout.CLAIM, layout.REVOCATION, layout.SPAN, layout.CLOSING)


@dataclass(frozen=True, slots=True)
class StoredEntity:
    """As it lies there. `forgotten_at` is NEVER where it was not."""

    entity: Entity
    forgotten_at: int


@dataclass(frozen=True, slots=True)
class StoredStatement:
    """As it lies there, with its hull."""

    statement: Statement
    forgotten_at: int
    hull: tuple[int, int]


async def stored_entities(
    sessions: Sessions, scope: Scope, ids: Iterable[EntityId]
) -> dict[EntityId, StoredEntity]:
    asked = vids(scope, Kind.ENTITY, ids)
    answers = await sessions.send_all(
        statements.fetch(layout.ENTITY, chunk) for chunk in in_chunks(asked, VIDS_A_SENTENCE)
    )
    rows = [StoredEntity(bodies.entity(row[0]), row[1]) for answer in answers for row in answer.rows]
    return {row.entity.id: row for row in rows}


async def stored_statements(
    sessions: Sessions, scope: Scope, ids: Iterable[StatementId]
) -> dict[StatementId, StoredStatement]:
    asked = vids(scope, Kind.STATEMENT, ids)
    answers = await sessions.send_all(
        statements.fetch(layout.STATEMENT, chunk) for chunk in in_chunks(asked, VIDS_A_SENTENCE)
    )
    rows = [
        StoredStatement(bodies.statement(body), forgotten_at, (start, end))
        for answer in answers
        for body, forgotten_at, start, end in answer.rows
    ]
    return {row.statement.id: row for row in rows}


async def entities(sessions: Sessions, scope: Scope, ids: Iterable[EntityId]) -> dict[EntityId, Entity]:
    found = await stored_entities(sessions, scope, ids)
    return {id: row.entity for id, row in found.items()}


async def edges(
    sessions: Sessions, asked: Iterable[Vid], types: Sequence[Edge], *, reversely: bool = False
) -> list[Told]:
    """What all edges of these types from (or to) these vids say."""
    answers = await sessions.send_all(
        statements.edges(chunk, types, reversely=reversely) for chunk in in_chunks(asked, VIDS_A_SENTENCE)
    )
    return [bodies.told(body) for answer in answers for (body,) in answer.rows]


@dataclass(slots=True)
class Slot:
    """What is told of some statements, sorted out, each thing once."""

    records: dict[RecordId, Record] = field(default_factory=dict)
    spans: dict[SpanId, Span] = field(default_factory=dict)
    _revoked: dict[RecordId, Revision] = field(default_factory=dict)
    _closed: dict[SpanId, Revision] = field(default_factory=dict)

    def add(self, found: Iterable[Told]) -> None:
        for one in found:
            match one:
                case Revoked():
                    self._revoked[one.record] = one.revoked_at
                case Closed():
                    self._closed[one.span] = one.known_to
                case Span():
                    self.spans.setdefault(one.id, one)
                case Claim() | End() | Denial() | Verdict():
                    self.records.setdefault(one.id, one)

    def of(self, type: type[R]) -> list[R]:
        """Records of a type, oldest first."""
        found = [
            replace(one, revoked_at=self._revoked.get(one.id))
            for one in self.records.values()
            if isinstance(one, type)
        ]
        return sorted(found, key=lambda record: (record.recorded_at, record.id))

    def all_spans(self) -> list[Span]:
        """Past beliefs too, in the order of belief."""
        found = [
            span if span.known_to is not None else replace(span, known_to=self._closed.get(span.id))
            for span in self.spans.values()
        ]
        return sorted(found, key=lambda span: (span.known_from, held(span)[0], span.id))


def counts_in(record: Record, known_at: Revision) -> bool:
    """Whether a record counts at a revision."""
    revoked = record.revoked_at
    return record.recorded_at <= known_at and (revoked is None or revoked > known_at)


def is_believed(span: Span, known_at: Revision) -> bool:
    return span.known_from <= known_at and (span.known_to is None or span.known_to > known_at)


def window(at: AsOf) -> tuple[int, int]:
    """(before, after): `at` sees a span that starts before the one and ends after the other."""
    starts = [OPEN] if at.until is None else [at.until]
    ends = [UNKNOWN_START] if at.since is None else [at.since]
    if at.valid_at is not None:
        starts.append(Instant(at.valid_at + 1))
        ends.append(at.valid_at)
    return min(starts), max(ends)


def as_asked(span: Span, at: AsOf) -> bool:
    before, after = window(at)
    start, end = held(span)
    return is_believed(span, at.known_at) and start < before and end > after


async def find_entities(
    sessions: Sessions, scope: Scope, keys: Sequence[str], known_at: Revision
) -> dict[str, list[Entity]]:
    asked = list(dict.fromkeys(key(scope, text) for text in keys))
    wanted = set(keys)
    found = [
        one
        for one in await edges(sessions, asked, [layout.ALIAS])
        if isinstance(one, Alias) and one.recorded_at <= known_at and one.key in wanted and one.name + one.key
    ]
    nodes = await entities(sessions, scope, [alias.entity for alias in found])
    by_key: dict[str, dict[EntityId, Entity]] = defaultdict(dict)
    for alias in found:
        node = nodes.get(alias.entity)
        if node is not None and node.created_at <= known_at:
            by_key[alias.key][node.id] = node
    return {
        text: sorted(some.values(), key=lambda node: (node.created_at, node.id))
        for text, some in by_key.items()
    }


async def aliases(sessions: Sessions, scope: Scope, known_at: Revision) -> list[Alias]:
    """Of the whole graph: reads every entity's."""
    shelves = await joins.shelves(sessions, scope, Kind.THINGS, Kind.PREDICATES)
    members = await joins.all_members(sessions, shelves, [layout.ON_SHELF], known_at)
    nodes = [member.position.member for member in members]
    found = await edges(sessions, nodes, [layout.ALIAS], reversely=True)
    # One without texts is left of a deletion that failed half way.
    known = [
        one for one in found if isinstance(one, Alias) and one.recorded_at <= known_at and one.name + one.key
    ]
    return sorted(known, key=lambda alias: (alias.key, alias.type, alias.entity))


async def views(
    sessions: Sessions, scope: Scope, ids: Iterable[StatementId], at: AsOf
) -> list[StatementView]:
    """In the order asked, each once. Statements created after `at.known_at` are left out."""
    asked = list(dict.fromkeys(ids))
    known, found = await asyncio.gather(
        stored_statements(sessions, scope, asked),
        edges(sessions, vids(scope, Kind.STATEMENT, asked), VIEWED),
    )
    shown = [known[id].statement for id in asked if id in known]
    shown = [statement for statement in shown if statement.created_at <= at.known_at]
    nodes = await entities(sessions, scope, _nodes(shown))
    slot = Slot()
    slot.add(found)
    spans: dict[StatementId, list[Span]] = defaultdict(list)
    for span in slot.all_spans():
        if as_asked(span, at):
            spans[span.statement].append(span)
    claims: dict[StatementId, list[Claim]] = defaultdict(list)
    for claim in slot.of(Claim):
        if counts_in(claim, at.known_at):
            claims[claim.statement].append(claim)
    # An erasure that is under way may have taken a statement's nodes already.
    return [
        _view(statement, nodes, spans[statement.id], claims[statement.id])
        for statement in shown
        if all(node in nodes for node in _nodes([statement]))
    ]


def _nodes(found: Iterable[Statement]) -> Iterable[EntityId]:
    for statement in found:
        yield statement.subject
        yield statement.predicate
        if not isinstance(statement.object, Literal):
            yield statement.object


def _view(
    statement: Statement, nodes: Mapping[EntityId, Entity], spans: list[Span], claims: list[Claim]
) -> StatementView:
    target = statement.object
    cited = sorted(
        (claim.attested_at, claim.source.episode) for claim in claims if claim.source.episode is not None
    )
    return StatementView(
        statement=statement,
        subject=nodes[statement.subject],
        predicate=nodes[statement.predicate],
        object=None if isinstance(target, Literal) else nodes[target],
        spans=tuple(sorted(spans, key=lambda span: (*held(span), span.id))),
        episodes=tuple(dict.fromkeys(episode for _, episode in cited)),
    )


async def records(sessions: Sessions, scope: Scope, ids: Iterable[StatementId]) -> Records:
    asked = vids(scope, Kind.STATEMENT, ids)
    known, told_by, told_of = await asyncio.gather(
        stored_statements(sessions, scope, ids),
        edges(sessions, asked, layout.OF_STATEMENT),
        edges(sessions, asked, [layout.VERDICT], reversely=True),
    )
    slot = Slot()
    slot.add(told_by)
    slot.add(told_of)
    lefts = {one.left for one in told_of if isinstance(one, Verdict)}
    others = vids(scope, Kind.STATEMENT, sorted(lefts.difference(known)))
    slot.add(await edges(sessions, others, [layout.REVOCATION]))
    found = [row.statement for row in known.values()]
    return Records(
        statements=sorted(found, key=lambda statement: (statement.created_at, statement.id)),
        claims=slot.of(Claim),
        ends=slot.of(End),
        denials=slot.of(Denial),
        verdicts=slot.of(Verdict),
        spans=slot.all_spans(),
    )


async def of_episode(sessions: Sessions, scope: Scope, episode: EpisodeId) -> Records:
    asked = vids(scope, Kind.EPISODE, [episode])
    told = await edges(sessions, asked, [*layout.RECORDS, layout.JUDGED], reversely=True)
    said = [one for one in told if isinstance(one, Claim | End | Denial | Judged)]
    about = sorted(set(map(_about, said)))
    at = vids(scope, Kind.STATEMENT, about)
    more, there = await asyncio.gather(
        edges(sessions, at, [layout.VERDICT, layout.REVOCATION]), stored_statements(sessions, scope, about)
    )
    slot = Slot()
    # Of a statement that was erased in several attempts the episode's half of an edge may be left.
    slot.add(one for one in said if _about(one) in there)
    # A verdict that was there already stays its first episode's, whoever gives it again.
    slot.add(one for one in more if not isinstance(one, Verdict) or one.episode == episode)
    return Records(
        statements=(),
        claims=slot.of(Claim),
        ends=slot.of(End),
        denials=slot.of(Denial),
        verdicts=slot.of(Verdict),
        spans=(),
    )


def _about(one: Claim | End | Denial | Judged) -> StatementId:
    return one.left if isinstance(one, Judged) else one.statement


async def statements_of_pairs(
    sessions: Sessions, scope: Scope, kind: Kind, pairs: Sequence[NodePair]
) -> dict[NodePair, list[StatementId]]:
    """Ids of the statements of each pair, oldest first; `kind`: SLOT or BETWEEN."""
    asked = {pair(scope, kind, *one): one for one in dict.fromkeys(pairs) if all(map(is_id, one))}
    found: dict[NodePair, list[StatementId]] = defaultdict(list)
    for member in await joins.all_members(sessions, list(asked), [layout.HAS_PAIR]):
        for anchor in member.anchors:
            found[asked[anchor]].append(member.statement)
    return dict(found)


async def ended_by(
    sessions: Sessions, scope: Scope, episode: EpisodeId, known_at: Revision
) -> set[StatementId]:
    """Statements with a span, believed then, that a record of this episode ended."""
    said = await edges(sessions, vids(scope, Kind.EPISODE, [episode]), layout.RECORDS, reversely=True)
    causes = {one.id for one in said if isinstance(one, Claim | End | Denial)}
    slot = Slot()
    slot.add(await edges(sessions, vids(scope, Kind.RECORD, sorted(causes)), [layout.SPAN], reversely=True))
    about = vids(scope, Kind.STATEMENT, sorted({span.statement for span in slot.spans.values()}))
    slot.add(await edges(sessions, about, [layout.CLOSING]))
    return {span.statement for span in slot.all_spans() if is_believed(span, known_at)}


async def claimed_by(
    sessions: Sessions, scope: Scope, episodes: Iterable[EpisodeId], known_at: Revision
) -> set[StatementId]:
    """Statements with a claim of one of these episodes that was recorded by then, revoked or not."""
    asked = vids(scope, Kind.EPISODE, episodes)
    found = await edges(sessions, asked, [layout.CLAIM], reversely=True)
    return {one.statement for one in found if isinstance(one, Claim) and one.recorded_at <= known_at}


async def hulls(
    sessions: Sessions, scope: Scope, ids: Collection[StatementId]
) -> dict[StatementId, Interval]:
    """The kept hulls that are not empty."""
    rows = await stored_statements(sessions, scope, ids)
    return {
        id: Interval(
            None if row.hull[0] == UNKNOWN_START else Instant(row.hull[0]),
            None if row.hull[1] == OPEN else Instant(row.hull[1]),
        )
        for id, row in rows.items()
        if row.hull[0] <= row.hull[1]
    }
