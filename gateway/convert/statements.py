"""Statements, spans, causes and records as the public API shows them."""

from datetime import datetime
from decimal import Decimal

from google.protobuf.timestamp_pb2 import Timestamp

from gateway.convert.names import aspect_out, entity_type_out
from gateway.convert.predicates import CARDINALITIES
from gateway.convert.times import precision_out, stamp, timestamp
from palimpsest.internal.v1 import values_pb2 as internal
from palimpsest.v1 import entity_pb2, statement_pb2
from services.domain.graph import LiteralKind
from services.domain.instants import instant
from services.domain.predicates import Cardinality, default_vocabulary
from services.domain.records import EndReason

_SOURCE_REMOVED = EndReason.SOURCE_REMOVED.name.lower()
_CAUSES = {
    internal.FACT_KIND_CLAIM: statement_pb2.CAUSE_KIND_CLAIM,
    internal.FACT_KIND_END: statement_pb2.CAUSE_KIND_END,
    internal.FACT_KIND_DENIAL: statement_pb2.CAUSE_KIND_DENIAL,
}


def entity_out(entity: internal.Entity) -> entity_pb2.Entity:
    return entity_pb2.Entity(
        entity_id=entity.id,
        name=entity.name,
        type=entity_type_out(entity.type),
        aliases=entity.aliases,
    )


def predicate_out(predicate: internal.Entity) -> entity_pb2.Predicate:
    """With what the graph knows of it, or else what ships; of one whose episodes are deleted only the id."""
    if not predicate.name:
        return entity_pb2.Predicate(predicate_id=predicate.id)
    vocabulary, told = default_vocabulary(), bool(predicate.cardinality)
    cardinality = Cardinality(predicate.cardinality) if told else vocabulary.cardinality(predicate.name)
    return entity_pb2.Predicate(
        predicate_id=predicate.id,
        name=predicate.name,
        cardinality=CARDINALITIES[cardinality],
        aliases=predicate.aliases,
        inverse=predicate.inverse if told else vocabulary.inverse(predicate.name) or "",
    )


def object_out(statement: internal.Statement) -> entity_pb2.ObjectValue:
    if statement.HasField("literal"):
        return entity_pb2.ObjectValue(literal=literal_out(statement.literal))
    return entity_pb2.ObjectValue(entity=entity_out(statement.entity))


def literal_out(literal: internal.Literal) -> entity_pb2.Literal:
    match LiteralKind(literal.kind):
        case LiteralKind.STRING:
            return entity_pb2.Literal(string_value=literal.text)
        case LiteralKind.NUMBER:
            return entity_pb2.Literal(number_value=float(Decimal(literal.text)))
        case LiteralKind.BOOLEAN:
            return entity_pb2.Literal(bool_value=literal.text == "true")
        case LiteralKind.TIME:
            return entity_pb2.Literal(time_value=_time_of(literal.text))


def span_out(span: internal.Span, statement_id: str) -> statement_pb2.Span:
    known_to = stamp(span.known_to, span.known_to_at) if span.HasField("known_to") else None
    return statement_pb2.Span(
        valid_at=timestamp(span.valid_at if span.HasField("valid_at") else None),
        valid_at_precision=precision_out(span.valid_at_precision),
        invalid_at=timestamp(span.invalid_at if span.HasField("invalid_at") else None),
        invalid_at_precision=precision_out(span.invalid_at_precision),
        known_from=stamp(span.known_from, span.known_from_at),
        known_to=known_to,
        start_cause=_cause(
            statement_pb2.CAUSE_KIND_CLAIM, span.started_by, statement_id, span.started_by_episode
        ),
        end_cause=_end_cause(span, statement_id),
        start_kind=statement_pb2.START_KIND_ASSUMED
        if span.start_assumed
        else statement_pb2.START_KIND_STATED,
        contested=span.contested,
    )


def statement_out(statement: internal.Statement, graph_id: str) -> statement_pb2.Statement:
    """With believed spans; the fields that users know are read off the last one."""
    spans = [span for span in statement.spans if not span.HasField("known_to")]
    shown = statement_pb2.Statement(
        statement_id=statement.id,
        graph_id=graph_id,
        subject=entity_out(statement.subject),
        predicate=predicate_out(statement.predicate),
        object=object_out(statement),
        fact=statement.fact,
        aspect=aspect_out(statement.aspect),
        created_at=timestamp(statement.created_at),
        confidence=statement.confidence,
        contested=any(span.contested for span in spans),
        source_count=len(statement.episode_ids),
        archived=statement.archived,
        spans=[span_out(span, statement.id) for span in spans],
        event_at=timestamp(statement.event_at if statement.HasField("event_at") else None),
    )
    if spans:
        last = shown.spans[-1]
        shown.valid_at_precision, shown.invalid_at_precision = (
            last.valid_at_precision,
            last.invalid_at_precision,
        )
        if last.HasField("valid_at"):
            shown.valid_at.CopyFrom(last.valid_at)
        if last.HasField("invalid_at"):
            shown.invalid_at.CopyFrom(last.invalid_at)
            shown.invalidated_by = last.end_cause.episode_id
    elif statement.spans:
        expired = max(statement.spans, key=lambda span: span.known_to)
        shown.expired_at.CopyFrom(timestamp(expired.known_to_at) or Timestamp())
    return shown


def record_source(record: internal.Record) -> statement_pb2.RecordSource:
    return statement_pb2.RecordSource(
        episode_id=record.episode_id,
        passage_id=record.passage_id,
        quote=record.quote,
        attested_at=timestamp(record.attested_at),
        confidence=record.confidence,
        recorded_at=stamp(record.recorded_at, record.recorded_at_clock),
        revoked_at=stamp(record.revoked_at, record.revoked_at_clock)
        if record.HasField("revoked_at")
        else None,
        origin=_origin(record),
        reason=record.why,
    )


def claim_out(record: internal.Record, statement_id: str) -> statement_pb2.Claim:
    stated = record.HasField("start")
    return statement_pb2.Claim(
        claim_id=record.id,
        statement_id=statement_id,
        start=timestamp(record.start if stated else record.attested_at),
        start_kind=statement_pb2.START_KIND_STATED if stated else statement_pb2.START_KIND_ASSUMED,
        start_precision=precision_out(record.start_precision),
        end=timestamp(record.end if record.HasField("end") else None),
        end_precision=precision_out(record.end_precision),
        seen=timestamp(record.seen if record.HasField("seen") else None),
        time_text=record.time_text,
        source=record_source(record),
    )


def end_out(record: internal.Record, statement_id: str) -> statement_pb2.End:
    return statement_pb2.End(
        end_id=record.id,
        statement_id=statement_id,
        ended_at=timestamp(record.end),
        ended_at_precision=precision_out(record.end_precision),
        source=record_source(record),
    )


def denial_out(record: internal.Record, statement_id: str) -> statement_pb2.Denial:
    return statement_pb2.Denial(
        denial_id=record.id,
        statement_id=statement_id,
        denied_from=timestamp(record.start if record.HasField("start") else None),
        denied_until=timestamp(record.end if record.HasField("end") else None),
        source=record_source(record),
    )


def verdict_out(verdict: internal.Verdict, statement_id: str) -> statement_pb2.Verdict:
    """A verdict as seen from one of its two statements."""
    pair = (verdict.statement_id, verdict.other_statement_id)
    other = pair[0] if pair[1] == statement_id else pair[1]
    version = f" {verdict.prompt_version}" if verdict.prompt_version else ""
    return statement_pb2.Verdict(
        verdict_id=verdict.id,
        statement_id=statement_id,
        other_statement_id=other,
        kind=statement_pb2.VerdictKind.Value(f"VERDICT_KIND_{verdict.kind.upper()}"),
        decided_by=statement_pb2.VerdictSource.Value(f"VERDICT_SOURCE_{verdict.judge.upper()}"),
        reason=verdict.why,
        model=f"{verdict.model}{version}",
        recorded_at=stamp(verdict.recorded_at, verdict.recorded_at_clock),
        revoked_at=stamp(verdict.revoked_at, verdict.revoked_at_clock)
        if verdict.HasField("revoked_at")
        else None,
    )


def verdict_kind_in(kind: statement_pb2.VerdictKind.ValueType) -> str:
    """The internal name of a kind."""
    return statement_pb2.VerdictKind.Name(kind).removeprefix("VERDICT_KIND_").lower()


def _end_cause(span: internal.Span, statement_id: str) -> statement_pb2.Cause | None:
    if not span.ended_by:
        return None
    kind = _CAUSES[span.ended_by_kind]
    if kind == statement_pb2.CAUSE_KIND_CLAIM and span.ended_by_statement == statement_id:
        kind = statement_pb2.CAUSE_KIND_STATED_END
    cause = _cause(kind, span.ended_by, span.ended_by_statement, span.ended_by_episode)
    if span.ended_by_reason == _SOURCE_REMOVED:
        cause.origin = statement_pb2.RECORD_ORIGIN_SOURCE_REMOVED
    return cause


def _cause(
    kind: statement_pb2.CauseKind.ValueType, record: str, statement: str, episode: str
) -> statement_pb2.Cause:
    origin = statement_pb2.RECORD_ORIGIN_EPISODE if episode else statement_pb2.RECORD_ORIGIN_USER
    return statement_pb2.Cause(
        kind=kind, record_id=record, statement_id=statement, episode_id=episode, origin=origin
    )


def _origin(record: internal.Record) -> statement_pb2.RecordOrigin.ValueType:
    if record.reason == _SOURCE_REMOVED:
        return statement_pb2.RECORD_ORIGIN_SOURCE_REMOVED
    return statement_pb2.RECORD_ORIGIN_EPISODE if record.episode_id else statement_pb2.RECORD_ORIGIN_USER


def _time_of(text: str) -> Timestamp:
    return timestamp(instant(datetime.fromisoformat(text))) or Timestamp()
