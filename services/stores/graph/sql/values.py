"""Values of the domain as rows of the graph's tables, and back."""

import hashlib
import json
from typing import Any

from sqlalchemy import RowMapping

from services.domain.graph import Entity, EntityType, GraphAspect, Literal, LiteralKind, Span, Statement
from services.domain.ids import EntityId
from services.domain.instants import Precision
from services.domain.records import Claim, Denial, End, EndReason, Judge, Source, Verdict, VerdictKind
from services.stores.graph.port import Alias
from services.stores.graph.sql.schema import OPEN, UNKNOWN_START
from services.stores.sql.rows import Row


def key_hash(key: str) -> str:
    """What an alias is looked up by: 32 hex digits, for any text."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def entity_row(scope: str, entity: Entity) -> Row:
    return {
        "scope": scope,
        "id": entity.id,
        "name": entity.name,
        "key": entity.key,
        "type": entity.type.value,
        "aliases": json.dumps(entity.aliases, ensure_ascii=False),
        "created_at": entity.created_at,
        "forgotten_at": None,
    }


def entity_of(row: RowMapping) -> Entity:
    return Entity(
        id=row["id"],
        name=row["name"],
        key=row["key"],
        type=EntityType(row["type"]),
        aliases=tuple(json.loads(row["aliases"])) if row["aliases"] != "[]" else (),
        created_at=row["created_at"],
    )


def alias_row(scope: str, alias: Alias, revision: int) -> Row:
    return {
        "scope": scope,
        "key_hash": key_hash(alias.key),
        "type": alias.type.value,
        "entity": alias.entity,
        "key": alias.key,
        "name": alias.name,
        "recorded_at": revision,
    }


def alias_of(row: RowMapping) -> Alias:
    return Alias(
        key=row["key"],
        type=EntityType(row["type"]),
        entity=row["entity"],
        name=row["name"],
        recorded_at=row["recorded_at"],
    )


def statement_row(scope: str, statement: Statement) -> Row:
    target = statement.object
    literal = target if isinstance(target, Literal) else None
    return {
        "scope": scope,
        "id": statement.id,
        "subject": statement.subject,
        "predicate": statement.predicate,
        "object": None if isinstance(target, Literal) else target,
        "literal_kind": literal.kind.value if literal else None,
        "literal_text": literal.text if literal else None,
        "fact": statement.fact,
        "aspect": statement.aspect.value if statement.aspect else None,
        "event_at": statement.event_at,
        "created_at": statement.created_at,
        "hull_from": OPEN,
        "hull_to": UNKNOWN_START,
        "forgotten_at": None,
    }


def statement_of(row: RowMapping) -> Statement:
    target: EntityId | Literal
    if row["object"] is None:
        target = Literal(LiteralKind(row["literal_kind"]), row["literal_text"])
    else:
        target = EntityId(row["object"])
    return Statement(
        id=row["id"],
        subject=row["subject"],
        predicate=row["predicate"],
        object=target,
        fact=row["fact"],
        aspect=GraphAspect(row["aspect"]) if row["aspect"] is not None else None,
        event_at=row["event_at"],
        created_at=row["created_at"],
    )


def _record_row(scope: str, record: Claim | End | Denial) -> dict[str, Any]:
    return {
        "scope": scope,
        "statement": record.statement,
        "id": record.id,
        "attested_at": record.attested_at,
        "episode": record.source.episode,
        "passage": record.source.passage,
        "quote": record.source.quote,
        "confidence": record.confidence,
        "recorded_at": record.recorded_at,
    }


def _source_of(row: RowMapping) -> Source:
    return Source(episode=row["episode"], passage=row["passage"], quote=row["quote"])


def claim_row(scope: str, claim: Claim) -> Row:
    return _record_row(scope, claim) | {
        "start": claim.start,
        "end": claim.end,
        "seen": claim.seen,
        "start_precision": claim.start_precision.value,
        "end_precision": claim.end_precision.value,
        "time_text": claim.time_text,
    }


def claim_of(row: RowMapping) -> Claim:
    return Claim(
        id=row["id"],
        statement=row["statement"],
        start=row["start"],
        end=row["end"],
        attested_at=row["attested_at"],
        seen=row["seen"],
        source=_source_of(row),
        start_precision=Precision(row["start_precision"]),
        end_precision=Precision(row["end_precision"]),
        confidence=row["confidence"],
        time_text=row["time_text"],
        recorded_at=row["recorded_at"],
        revoked_at=row["revoked_at"],
    )


def end_row(scope: str, end: End) -> Row:
    return _record_row(scope, end) | {
        "at": end.at,
        "precision": end.precision.value,
        "reason": end.reason.value,
    }


def end_of(row: RowMapping) -> End:
    return End(
        id=row["id"],
        statement=row["statement"],
        at=row["at"],
        attested_at=row["attested_at"],
        source=_source_of(row),
        precision=Precision(row["precision"]),
        reason=EndReason(row["reason"]),
        confidence=row["confidence"],
        recorded_at=row["recorded_at"],
        revoked_at=row["revoked_at"],
    )


def denial_row(scope: str, denial: Denial) -> Row:
    return _record_row(scope, denial) | {"start": denial.start, "until": denial.until}


def denial_of(row: RowMapping) -> Denial:
    return Denial(
        id=row["id"],
        statement=row["statement"],
        start=row["start"],
        until=row["until"],
        attested_at=row["attested_at"],
        source=_source_of(row),
        confidence=row["confidence"],
        recorded_at=row["recorded_at"],
        revoked_at=row["revoked_at"],
    )


def verdict_row(scope: str, verdict: Verdict) -> Row:
    return {
        "scope": scope,
        "id": verdict.id,
        "left": verdict.left,
        "right": verdict.right,
        "kind": verdict.kind.value,
        "judge": verdict.judge.value,
        "attested_at": verdict.attested_at,
        "why": verdict.why,
        "model": verdict.model,
        "prompt_version": verdict.prompt_version,
        "episode": verdict.episode,
        "recorded_at": verdict.recorded_at,
    }


def verdict_of(row: RowMapping) -> Verdict:
    return Verdict(
        id=row["id"],
        left=row["left"],
        right=row["right"],
        kind=VerdictKind(row["kind"]),
        judge=Judge(row["judge"]),
        attested_at=row["attested_at"],
        why=row["why"],
        model=row["model"],
        prompt_version=row["prompt_version"],
        episode=row["episode"],
        recorded_at=row["recorded_at"],
        revoked_at=row["revoked_at"],
    )


def span_row(scope: str, span: Span) -> Row:
    return {
        "scope": scope,
        "statement": span.statement,
        "id": span.id,
        "valid_at": UNKNOWN_START if span.valid_at is None else span.valid_at,
        "invalid_at": OPEN if span.invalid_at is None else span.invalid_at,
        "known_from": span.known_from,
        "known_to": OPEN if span.known_to is None else span.known_to,
        "started_by": span.started_by,
        "ended_by": span.ended_by,
        "contested": span.contested,
        "start_precision": None if span.start_precision is None else span.start_precision.value,
        "end_precision": None if span.end_precision is None else span.end_precision.value,
        "assumed": span.assumed,
    }


def span_of(row: RowMapping) -> Span:
    return Span(
        id=row["id"],
        statement=row["statement"],
        valid_at=None if row["valid_at"] == UNKNOWN_START else row["valid_at"],
        invalid_at=None if row["invalid_at"] == OPEN else row["invalid_at"],
        known_from=row["known_from"],
        known_to=None if row["known_to"] == OPEN else row["known_to"],
        started_by=row["started_by"],
        ended_by=row["ended_by"],
        contested=row["contested"],
        start_precision=_precision(row["start_precision"]),
        end_precision=_precision(row["end_precision"]),
        assumed=row["assumed"],
    )


def _precision(number: int | None) -> Precision | None:
    return None if number is None else Precision(number)
