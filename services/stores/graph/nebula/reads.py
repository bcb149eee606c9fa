"""Reads by id: vertices, the edges of statements, views, slots, and what an episode says.

A batch of statements is read with one FETCH and one GO for each few hundred, and their entities with another.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from services.domain.graph import Entity, Literal, Span, Statement
from services.domain.ids import EntityId, EpisodeId, Revision, SpanId, StatementId
from services.domain.instants import Instant, Interval
from services.domain.records import Claim, Record
from services.domain.scope import Scope
from services.stores.graph.nebula import joins, layout, statements, values
from services.stores.graph.nebula.layout import OPEN, UNKNOWN_START, Edge, Tag
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.values import FoundEdge
from services.stores.graph.nebula.vids import Kind, Vid, id_of, is_id, key, pair, vids
from services.stores.graph.port import Alias, AsOf, NodePair, Records, StatementView
from services.stores.sql.rows import in_chunks

R = TypeVar("R", bound=Record)
Rows = dict[Vid, dict[str, Any]]

VIDS_A_SENTENCE = 250
VIEWED = (layout.CLAIM, layout.REVOCATION, layout.SPAN, layout.CLOSING)


async def fetch(sessions: Sessions, tag: Tag, asked: Iterable[Vid]) -> Rows:
    """Vertices that are there."""
    answers = await sessions.send_all(
        statements.fetch(tag, chunk) for chunk in in_chunks(asked, VIDS_A_SENTENCE)
    )
    return {Vid(one): row for answer in answers for one, row in answer.rows}


async def edges(
    sessions: Sessions, asked: Iterable[Vid], types: Sequence[Edge], *, reversely: bool = False
) -> list[FoundEdge]:
    """All edges of these types from (or to) these vids, each once."""
    answers = await sessions.send_all(
        statements.edges(chunk, types, reversely=reversely) for chunk in in_chunks(asked, VIDS_A_SENTENCE)
    )
    found = {
        (type, source, target, place): FoundEdge(type, Vid(source), Vid(target), place, row)
        for answer in answers
        for type, source, target, place, row in answer.rows
    }
    return list(found.values())


@dataclass(slots=True)
class Told:
    """Edges of statements, sorted out. Revocations and closings are known by the place of what they end."""

    records: dict[str, list[FoundEdge]] = field(default_factory=lambda: defaultdict(list))
    spans: list[FoundEdge] = field(default_factory=list)
    _revoked: dict[tuple[Vid, int], Revision] = field(default_factory=dict)
    _closed: dict[tuple[Vid, int], Revision] = field(default_factory=dict)

    def add(self, found: Iterable[FoundEdge]) -> None:
        for edge in found:
            if edge.type == layout.REVOCATION.name:
                self._revoked[edge.source, edge.place] = Revision(edge.row["revoked_at"])
            elif edge.type == layout.CLOSING.name:
                self._closed[edge.source, edge.place] = Revision(edge.row["known_to"])
            elif edge.type == layout.SPAN.name:
                self.spans.append(edge)
            else:
                self.records[edge.type].append(edge)

    def of(self, type: Edge, read: Callable[[FoundEdge, Revision | None], R]) -> list[R]:
        """Records of a type, oldest first, each once."""
        found: dict[str, R] = {}
        for edge in self.records[type.name]:
            one = read(edge, self._revoked.get((edge.source, edge.place)))
            found.setdefault(one.id, one)
        return sorted(found.values(), key=lambda record: (record.recorded_at, record.id))

    def believed(self) -> list[Span]:
        """All spans, past beliefs too, in the order of belief."""
        found: dict[SpanId, Span] = {}
        for edge in self.spans:
            span = values.span_of(edge, self._closed.get((edge.source, edge.place)))
            found.setdefault(span.id, span)
        return sorted(found.values(), key=lambda span: (span.known_from, values.held(span)[0], span.id))


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
    start, end = values.held(span)
    return is_believed(span, at.known_at) and start < before and end > after


async def entities(sessions: Sessions, scope: Scope, ids: Iterable[EntityId]) -> dict[EntityId, Entity]:
    rows = await fetch(sessions, layout.ENTITY, vids(scope, Kind.ENTITY, ids))
    found = [values.entity_of(one, row) for one, row in rows.items()]
    return {entity.id: entity for entity in found}


async def statements_of(
    sessions: Sessions, scope: Scope, ids: Iterable[StatementId]
) -> dict[StatementId, Statement]:
    rows = await fetch(sessions, layout.STATEMENT, vids(scope, Kind.STATEMENT, ids))
    found = [values.statement_of(one, row) for one, row in rows.items()]
    return {statement.id: statement for statement in found}


async def find_entities(
    sessions: Sessions, scope: Scope, keys: Sequence[str], known_at: Revision
) -> dict[str, list[Entity]]:
    asked = {key(scope, text): text for text in keys}
    found = [
        edge
        for edge in await edges(sessions, asked, [layout.ALIAS])
        if edge.row["recorded_at"] <= known_at and edge.row["key"] == asked[edge.source]
    ]
    nodes = await entities(sessions, scope, [EntityId(id_of(edge.target)) for edge in found])
    by_key: dict[str, dict[EntityId, Entity]] = defaultdict(dict)
    for edge in found:
        node = nodes.get(EntityId(id_of(edge.target)))
        if node is not None and node.created_at <= known_at:
            by_key[asked[edge.source]][node.id] = node
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
    known = [values.alias_of(edge) for edge in found if edge.row["recorded_at"] <= known_at]
    return sorted(known, key=lambda alias: (alias.key, alias.type, alias.entity))


async def views(
    sessions: Sessions, scope: Scope, ids: Iterable[StatementId], at: AsOf
) -> list[StatementView]:
    """In the order asked, each once. Statements created after `at.known_at` are left out."""
    asked = vids(scope, Kind.STATEMENT, ids)
    known, found = await asyncio.gather(
        fetch(sessions, layout.STATEMENT, asked), edges(sessions, asked, VIEWED)
    )
    shown = [values.statement_of(one, known[one]) for one in asked if one in known]
    shown = [statement for statement in shown if statement.created_at <= at.known_at]
    nodes = await entities(sessions, scope, _nodes(shown))
    told = Told()
    told.add(found)
    spans: dict[StatementId, list[Span]] = defaultdict(list)
    for span in told.believed():
        if as_asked(span, at):
            spans[span.statement].append(span)
    claims: dict[StatementId, list[Claim]] = defaultdict(list)
    for claim in told.of(layout.CLAIM, values.claim_of):
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
        spans=tuple(sorted(spans, key=lambda span: (*values.held(span), span.id))),
        episodes=tuple(dict.fromkeys(episode for _, episode in cited)),
    )


async def records(sessions: Sessions, scope: Scope, ids: Iterable[StatementId]) -> Records:
    asked = vids(scope, Kind.STATEMENT, ids)
    known, told_by, told_of = await asyncio.gather(
        fetch(sessions, layout.STATEMENT, asked),
        edges(sessions, asked, layout.OF_STATEMENT),
        edges(sessions, asked, [layout.VERDICT], reversely=True),
    )
    others = {edge.source for edge in told_of}.difference(asked)
    told = Told()
    told.add(told_by)
    told.add(told_of)
    told.add(await edges(sessions, sorted(others), [layout.REVOCATION]))
    found = [values.statement_of(one, row) for one, row in known.items()]
    return Records(
        statements=sorted(found, key=lambda statement: (statement.created_at, statement.id)),
        claims=told.of(layout.CLAIM, values.claim_of),
        ends=told.of(layout.ENDING, values.end_of),
        denials=told.of(layout.DENIAL, values.denial_of),
        verdicts=told.of(layout.VERDICT, values.verdict_of),
        spans=told.believed(),
    )


async def of_episode(sessions: Sessions, scope: Scope, episode: EpisodeId) -> Records:
    asked = vids(scope, Kind.EPISODE, [episode])
    said = await edges(sessions, asked, [*layout.RECORDS, layout.JUDGED], reversely=True)
    about = sorted({edge.source for edge in said})
    judged = {edge.row["id"] for edge in said if edge.type == layout.JUDGED.name}
    more = await edges(sessions, about, [layout.VERDICT, layout.REVOCATION])
    told = Told()
    told.add(edge for edge in said if edge.type != layout.JUDGED.name)
    told.add(edge for edge in more if edge.type == layout.REVOCATION.name or edge.row["id"] in judged)
    return Records(
        statements=(),
        claims=told.of(layout.CLAIM, values.claim_of),
        ends=told.of(layout.ENDING, values.end_of),
        denials=told.of(layout.DENIAL, values.denial_of),
        verdicts=told.of(layout.VERDICT, values.verdict_of),
        spans=(),
    )


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
    causes = vids(scope, Kind.RECORD, sorted({edge.row["id"] for edge in said}))
    told = Told()
    told.add(await edges(sessions, causes, [layout.SPAN], reversely=True))
    about = sorted({edge.source for edge in told.spans})
    told.add(await edges(sessions, about, [layout.CLOSING]))
    return {span.statement for span in told.believed() if is_believed(span, known_at)}


async def claimed_by(
    sessions: Sessions, scope: Scope, episodes: Iterable[EpisodeId], known_at: Revision
) -> set[StatementId]:
    """Statements with a claim of one of these episodes that was recorded by then, revoked or not."""
    asked = vids(scope, Kind.EPISODE, episodes)
    found = await edges(sessions, asked, [layout.CLAIM], reversely=True)
    return {edge.statement for edge in found if edge.row["recorded_at"] <= known_at}


async def hulls(sessions: Sessions, scope: Scope, ids: Sequence[StatementId]) -> dict[StatementId, Interval]:
    """The kept hulls that are not empty."""
    rows = await fetch(sessions, layout.STATEMENT, vids(scope, Kind.STATEMENT, ids))
    found: dict[StatementId, Interval] = {}
    for one, row in rows.items():
        start, end = row["hull_from"], row["hull_to"]
        if start <= end:
            found[StatementId(id_of(one))] = Interval(
                None if start == UNKNOWN_START else Instant(start), None if end == OPEN else Instant(end)
            )
    return found
