"""Values of the domain as rows of vertices and edges, and back."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from services.domain.graph import Entity, EntityType, GraphAspect, Literal, LiteralKind, Span, Statement
from services.domain.ids import EntityId, EpisodeId, PassageId, RecordId, Revision, SpanId, StatementId
from services.domain.instants import Instant, Precision
from services.domain.records import Claim, Denial, End, EndReason, Judge, Source, Verdict, VerdictKind
from services.domain.scope import Scope
from services.stores.graph.nebula.layout import NEVER, NO_TIME, OPEN, UNKNOWN_START
from services.stores.graph.nebula.statements import EdgeKey, Row
from services.stores.graph.nebula.vids import Kind, Vid, id_of, place_of, vid
from services.stores.graph.port import Alias

EMPTY_TEXTS = {
    "entity": {"name": "", "key": "", "aliases": "[]"},
    "statement": {"fact": "", "literal_text": ""},
    "claim": {"quote": "", "time_text": ""},
    "ending": {"quote": ""},
    "denial": {"quote": ""},
    "verdict": {"why": ""},
}
"""Columns that `forget` empties, by tag or edge type."""


@dataclass(frozen=True, slots=True)
class FoundEdge:
    """An edge as it is read."""

    type: str
    source: Vid
    target: Vid
    place: int
    row: dict[str, Any]

    @property
    def statement(self) -> StatementId:
        """Its source, where that is a statement."""
        return StatementId(id_of(self.source))

    @property
    def key(self) -> EdgeKey:
        return EdgeKey(self.source, self.target, self.place)


KeyedRow = tuple[EdgeKey, Row]


def texts(rows: Iterable[tuple[object, Row]]) -> Iterator[tuple[str, str]]:
    """Every text among rows, with its column."""
    for _, row in rows:
        for name, value in row.items():
            if isinstance(value, str):
                yield name, value


# Nodes.


def entity_row(entity: Entity) -> Row:
    return {
        "name": entity.name,
        "key": entity.key,
        "type": entity.type.value,
        "aliases": json.dumps(entity.aliases, ensure_ascii=False),
        "created_at": entity.created_at,
        "forgotten_at": NEVER,
    }


def entity_of(vid: Vid, row: dict[str, Any]) -> Entity:
    return Entity(
        id=EntityId(id_of(vid)),
        name=row["name"],
        key=row["key"],
        type=EntityType(row["type"]),
        aliases=tuple(json.loads(row["aliases"])),
        created_at=Revision(row["created_at"]),
    )


def statement_row(statement: Statement, hull: tuple[int, int]) -> Row:
    target = statement.object
    literal = target if isinstance(target, Literal) else None
    return {
        "subject": statement.subject,
        "predicate": statement.predicate,
        "object": "" if isinstance(target, Literal) else target,
        "literal_kind": literal.kind.value if literal else "",
        "literal_text": literal.text if literal else "",
        "fact": statement.fact,
        "aspect": statement.aspect.value if statement.aspect else "",
        "event_at": NO_TIME if statement.event_at is None else statement.event_at,
        "created_at": statement.created_at,
        "hull_from": hull[0],
        "hull_to": hull[1],
        "forgotten_at": NEVER,
    }


def statement_of(vid: Vid, row: dict[str, Any]) -> Statement:
    target: EntityId | Literal
    if row["object"]:
        target = EntityId(row["object"])
    else:
        target = Literal(LiteralKind(row["literal_kind"]), row["literal_text"])
    return Statement(
        id=StatementId(id_of(vid)),
        subject=EntityId(row["subject"]),
        predicate=EntityId(row["predicate"]),
        object=target,
        fact=row["fact"],
        aspect=GraphAspect(row["aspect"]) if row["aspect"] else None,
        event_at=_instant(row["event_at"], NO_TIME),
        created_at=Revision(row["created_at"]),
    )


def alias_row(alias: Alias, revision: Revision) -> Row:
    return {"key": alias.key, "type": alias.type.value, "name": alias.name, "recorded_at": revision}


def alias_of(edge: FoundEdge) -> Alias:
    row = edge.row
    entity, recorded_at = EntityId(id_of(edge.target)), Revision(row["recorded_at"])
    return Alias(row["key"], EntityType(row["type"]), entity, row["name"], recorded_at)


# Records.


def _said(scope: Scope, record: Claim | End | Denial) -> tuple[EdgeKey, dict[str, Any]]:
    source = record.source
    statement = vid(scope, Kind.STATEMENT, record.statement)
    told = statement if source.episode is None else vid(scope, Kind.EPISODE, source.episode)
    return EdgeKey(statement, told, place_of(record.id)), {
        "id": record.id,
        "attested_at": record.attested_at,
        "episode": source.episode or "",
        "passage": source.passage or "",
        "quote": source.quote,
        "confidence": float(record.confidence),
        "recorded_at": record.recorded_at,
    }


def claim_row(scope: Scope, claim: Claim) -> KeyedRow:
    key, row = _said(scope, claim)
    return key, row | {
        "start_at": UNKNOWN_START if claim.start is None else claim.start,
        "end_at": OPEN if claim.end is None else claim.end,
        "seen_at": claim.seen,
        "start_precision": claim.start_precision.value,
        "end_precision": claim.end_precision.value,
        "time_text": claim.time_text,
    }


def end_row(scope: Scope, end: End) -> KeyedRow:
    key, row = _said(scope, end)
    return key, row | {
        "ended_at": end.at,
        "precision": end.precision.value,
        "reason": end.reason.value,
    }


def denial_row(scope: Scope, denial: Denial) -> KeyedRow:
    key, row = _said(scope, denial)
    return key, row | {
        "start_at": UNKNOWN_START if denial.start is None else denial.start,
        "end_at": OPEN if denial.until is None else denial.until,
    }


def verdict_row(scope: Scope, verdict: Verdict) -> KeyedRow:
    left, right = (vid(scope, Kind.STATEMENT, side) for side in (verdict.left, verdict.right))
    return EdgeKey(left, right, place_of(verdict.id)), {
        "id": verdict.id,
        "attested_at": verdict.attested_at,
        "episode": verdict.episode or "",
        "kind": verdict.kind.value,
        "judge": verdict.judge.value,
        "why": verdict.why,
        "model": verdict.model,
        "prompt_version": verdict.prompt_version,
        "recorded_at": verdict.recorded_at,
    }


def _source_of(row: dict[str, Any]) -> Source:
    episode, passage = row["episode"], row["passage"]
    return Source(
        EpisodeId(episode) if episode else None, PassageId(passage) if passage else None, row["quote"]
    )


def claim_of(edge: FoundEdge, revoked_at: Revision | None) -> Claim:
    row = edge.row
    return Claim(
        id=RecordId(row["id"]),
        statement=edge.statement,
        start=_instant(row["start_at"], UNKNOWN_START),
        end=_instant(row["end_at"], OPEN),
        attested_at=Instant(row["attested_at"]),
        seen=Instant(row["seen_at"]),
        source=_source_of(row),
        start_precision=Precision(row["start_precision"]),
        end_precision=Precision(row["end_precision"]),
        confidence=row["confidence"],
        time_text=row["time_text"],
        recorded_at=Revision(row["recorded_at"]),
        revoked_at=revoked_at,
    )


def end_of(edge: FoundEdge, revoked_at: Revision | None) -> End:
    row = edge.row
    return End(
        id=RecordId(row["id"]),
        statement=edge.statement,
        at=Instant(row["ended_at"]),
        attested_at=Instant(row["attested_at"]),
        source=_source_of(row),
        precision=Precision(row["precision"]),
        reason=EndReason(row["reason"]),
        confidence=row["confidence"],
        recorded_at=Revision(row["recorded_at"]),
        revoked_at=revoked_at,
    )


def denial_of(edge: FoundEdge, revoked_at: Revision | None) -> Denial:
    row = edge.row
    return Denial(
        id=RecordId(row["id"]),
        statement=edge.statement,
        start=_instant(row["start_at"], UNKNOWN_START),
        until=_instant(row["end_at"], OPEN),
        attested_at=Instant(row["attested_at"]),
        source=_source_of(row),
        confidence=row["confidence"],
        recorded_at=Revision(row["recorded_at"]),
        revoked_at=revoked_at,
    )


def verdict_of(edge: FoundEdge, revoked_at: Revision | None) -> Verdict:
    row = edge.row
    return Verdict(
        id=RecordId(row["id"]),
        left=edge.statement,
        right=StatementId(id_of(edge.target)),
        kind=VerdictKind(row["kind"]),
        judge=Judge(row["judge"]),
        attested_at=Instant(row["attested_at"]),
        why=row["why"],
        model=row["model"],
        prompt_version=row["prompt_version"],
        episode=EpisodeId(row["episode"]) if row["episode"] else None,
        recorded_at=Revision(row["recorded_at"]),
        revoked_at=revoked_at,
    )


# Spans.


def span_row(scope: Scope, span: Span) -> KeyedRow:
    statement = vid(scope, Kind.STATEMENT, span.statement)
    cause = statement if span.ended_by is None else vid(scope, Kind.RECORD, span.ended_by)
    return EdgeKey(statement, cause, place_of(span.id)), {
        "id": span.id,
        "valid_at": UNKNOWN_START if span.valid_at is None else span.valid_at,
        "invalid_at": OPEN if span.invalid_at is None else span.invalid_at,
        "known_from": span.known_from,
        "known_to": OPEN if span.known_to is None else span.known_to,
        "started_by": span.started_by,
        "ended_by": span.ended_by or "",
        "contested": span.contested,
    }


def span_of(edge: FoundEdge, closed_at: Revision | None) -> Span:
    """`closed_at`: what a closing says; a span that came with an end of belief keeps it."""
    row = edge.row
    known_to = closed_at if row["known_to"] == OPEN else Revision(row["known_to"])
    return Span(
        id=SpanId(row["id"]),
        statement=edge.statement,
        valid_at=_instant(row["valid_at"], UNKNOWN_START),
        invalid_at=_instant(row["invalid_at"], OPEN),
        known_from=Revision(row["known_from"]),
        known_to=known_to,
        started_by=RecordId(row["started_by"]),
        ended_by=RecordId(row["ended_by"]) if row["ended_by"] else None,
        contested=row["contested"],
    )


def held(span: Span) -> tuple[int, int]:
    """Its borders as numbers: an unknown start is before, an open end after every instant."""
    return (
        UNKNOWN_START if span.valid_at is None else span.valid_at,
        OPEN if span.invalid_at is None else span.invalid_at,
    )


def _instant(stored: int, absent: int) -> Instant | None:
    return None if stored == absent else Instant(stored)
