"""Messages: nodes, text and voice as the internal API shows them."""

from collections.abc import Mapping

from palimpsest.internal.v1 import values_pb2 as pb
from services.domain.graph import Entity
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.lexicon import Lexicon
from services.domain.memory import Episode, Passage, VoiceAspect
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.voice import claims_at, ended_by, held, known_from
from services.stores.memory.following import said_of
from services.wire.fields import precision_out


def entity_out(entity: Entity) -> pb.Entity:
    return pb.Entity(id=entity.id, name=entity.name, type=entity.type, aliases=entity.aliases)


def predicate_out(entity: Entity, lexicon: Lexicon | None) -> pb.Entity:
    """A predicate with what the graph's lexicon says of it; one whose text was forgotten by its id alone."""
    message = entity_out(entity)
    if entity.key and lexicon is not None:
        message.cardinality = lexicon.known.cardinality(entity.key)
        message.inverse = lexicon.known.inverse(entity.key) or ""
    return message


def passage_out(passage: Passage, said_at: Instant) -> pb.Passage:
    return pb.Passage(
        id=passage.id,
        episode_id=passage.episode,
        position=passage.position,
        text=passage.text,
        speaker=passage.speaker,
        role=passage.role,
        message_id=passage.message_id,
        said_at=said_at,
        start=passage.start,
        end=passage.end,
    )


def episode_out(episode: Episode, passages: list[Passage]) -> pb.Episode:
    """An episode with its passages; a deleted one has neither text nor passages."""
    return pb.Episode(
        id=episode.id,
        job_id=episode.job,
        kind=episode.kind,
        text=episode.text,
        reference_time=episode.reference_time,
        created_at=episode.created_at,
        tokens=episode.tokens,
        position=episode.position,
        session_id=episode.session or "",
        document_id=episode.document or "",
        version=episode.version or 0,
        heading=episode.heading,
        title=episode.title,
        source=episode.source,
        deleted_at=episode.deleted_at,
        passages=[passage_out(passage, said_of(passage, episode).at) for passage in passages],
        metadata=dict(episode.metadata),
    )


def voice_out(
    aspect: VoiceAspect, known_at: Revision, clocks: Mapping[Revision, Instant] | None = None
) -> pb.VoiceAspect:
    """A voice aspect that is held at some time, as known at a revision; `clocks` of `known_from`.

    It is as sure as that it was said: an episode that has it is all the evidence that there can be.
    """
    interval = held(aspect, known_at)
    assert interval is not None, "an aspect that no claim supports is not shown"
    assert interval.start is not None, "it holds from its first claim"
    claims, end = claims_at(aspect, known_at), ended_by(aspect, known_at)
    since = known_from(aspect, known_at)
    return pb.VoiceAspect(
        id=aspect.id,
        kind=aspect.kind,
        text=aspect.text,
        valid_at=interval.start,
        invalid_at=interval.end,
        episode_ids=list(dict.fromkeys(claim.episode for claim in claims)),
        passage_ids=list(dict.fromkeys(claim.passage for claim in claims if claim.passage)),
        replaced_by=(end.by or "") if end else "",
        invalidated_by=(end.episode or "") if end else "",
        confidence=1.0,
        known_from=since,
        known_from_at=(clocks or {}).get(since, 0),
    )


def record_out(record: Claim | End | Denial) -> pb.Record:
    """A claim, an end or a denial with where it comes from."""
    message = pb.Record(
        id=record.id,
        attested_at=record.attested_at,
        confidence=record.confidence,
        episode_id=record.source.episode or "",
        passage_id=record.source.passage or "",
        quote=record.source.quote,
        recorded_at=record.recorded_at,
        revoked_at=record.revoked_at,
    )
    match record:
        case Claim():
            message.kind = pb.FACT_KIND_CLAIM
            _times(message, record.start, record.end)
            message.seen = record.seen
            message.start_precision = precision_out(record.start_precision)
            message.end_precision = precision_out(record.end_precision)
            message.time_text = record.time_text
        case End():
            message.kind = pb.FACT_KIND_END
            _times(message, None, record.at)
            message.end_precision = precision_out(record.precision)
            message.reason = record.reason.name.lower()
        case Denial():
            message.kind = pb.FACT_KIND_DENIAL
            _times(message, record.start, record.until)
    return message


def verdict_out(verdict: Verdict, known_at: Revision, clocks: Mapping[Revision, Instant]) -> pb.Verdict:
    """A verdict, without a revocation that came later."""
    message = pb.Verdict(
        id=verdict.id,
        statement_id=verdict.left,
        other_statement_id=verdict.right,
        kind=verdict.kind.name.lower(),
        judge=verdict.judge.name.lower(),
        why=verdict.why,
        model=verdict.model,
        prompt_version=verdict.prompt_version,
        recorded_at=verdict.recorded_at,
        recorded_at_clock=clocks.get(verdict.recorded_at, 0),
    )
    if verdict.revoked_at is not None and verdict.revoked_at <= known_at:
        message.revoked_at = verdict.revoked_at
        message.revoked_at_clock = clocks.get(verdict.revoked_at, 0)
    return message


def _times(message: pb.Record, start: Instant | None, end: Instant | None) -> None:
    if start is not None:
        message.start = start
    if end is not None:
        message.end = end
