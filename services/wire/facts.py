"""Facts, turns, settings and receipts to and from the messages between services."""

from palimpsest.internal.v1 import values_pb2 as pb
from services.domain.facts import DropReason, Turn, VoiceFact, WorldFact
from services.domain.instants import Instant
from services.domain.memory import EpisodeKind, Passage, Role, VoiceKind
from services.llm.port import Receipt
from services.llm.tasks import KnownFact, Profile, Setting
from services.wire.fields import (
    FACT_KINDS,
    fact_kind,
    graph_aspect,
    maybe,
    mention_in,
    mention_out,
    target_in,
    target_out,
    time_in,
    time_out,
)


def world_out(fact: WorldFact, passage_id: str) -> pb.WorldFact:
    return pb.WorldFact(
        kind=FACT_KINDS[fact.kind],
        subject=mention_out(fact.subject),
        predicate=fact.predicate,
        object=target_out(fact.object),
        fact=fact.fact,
        turn=fact.turn,
        quote=fact.quote,
        start=time_out(fact.start),
        end=time_out(fact.end),
        seen=time_out(fact.seen),
        confidence=fact.confidence,
        confirmed_by=fact.confirmed_by,
        aspect=fact.aspect or "",
        event_at=fact.event_at,
        passage_id=passage_id,
    )


def world_in(message: pb.WorldFact) -> WorldFact:
    """Raises ValueError when the kind or the object is missing."""
    return WorldFact(
        kind=fact_kind(message.kind),
        subject=mention_in(message.subject),
        predicate=message.predicate,
        object=target_in(message.object),
        fact=message.fact,
        turn=message.turn,
        quote=message.quote,
        start=time_in(message, "start"),
        end=time_in(message, "end"),
        seen=time_in(message, "seen"),
        confidence=message.confidence,
        confirmed_by=message.confirmed_by if message.HasField("confirmed_by") else None,
        aspect=graph_aspect(message.aspect),
        event_at=maybe(message, "event_at"),
    )


def voice_out(fact: VoiceFact, passage_id: str) -> pb.VoiceFact:
    return pb.VoiceFact(
        text=fact.text,
        turn=fact.turn,
        quote=fact.quote,
        kind=fact.kind or "",
        ends_earlier=fact.ends_earlier,
        passage_id=passage_id,
    )


def voice_in(message: pb.VoiceFact) -> VoiceFact:
    """Raises ValueError for a kind that is neither empty nor a voice aspect."""
    kind = VoiceKind(message.kind) if message.kind else None
    return VoiceFact(message.text, message.turn, message.quote, kind, message.ends_earlier)


def dropped_out(reason: DropReason, stage: str, turn: int) -> pb.DroppedFact:
    return pb.DroppedFact(reason=reason, stage=stage, turn=turn)


def turn_of(passage: Passage, reference_time: Instant) -> pb.Turn:
    """A stored passage as a turn of its episode."""
    said_at = reference_time if passage.said_at is None else passage.said_at
    return pb.Turn(
        position=passage.position,
        text=passage.text,
        speaker=passage.speaker,
        role=passage.role,
        said_at=said_at,
        passage_id=passage.id,
    )


def turn_in(message: pb.Turn) -> Turn:
    return Turn(
        message.position, message.text, message.speaker, Role(message.role), maybe(message, "said_at")
    )


def known_out(fact: KnownFact) -> pb.KnownFact:
    return pb.KnownFact(
        fact=fact.fact, valid_at=fact.valid_at, invalid_at=fact.invalid_at, source=fact.source
    )


def known_in(message: pb.KnownFact) -> KnownFact:
    return KnownFact(message.fact, maybe(message, "valid_at"), maybe(message, "invalid_at"), message.source)


def setting_in(message: pb.Setting) -> Setting:
    """Raises ValueError for a kind that is no episode kind, and for a profile that is none."""
    return Setting(
        kind=EpisodeKind(message.kind),
        reference_time=Instant(message.reference_time),
        time_zone=message.time_zone or "UTC",
        user_name=message.user_name,
        languages=tuple(message.languages),
        source=message.source,
        heading=tuple(message.heading),
        rules=tuple(message.rules),
        recent=tuple(message.recent),
        similar=tuple(message.similar),
        known_facts=tuple(known_in(fact) for fact in message.known_facts),
        known_entities=tuple(message.known_entities),
        known_predicates=tuple(message.known_predicates),
        known_names=tuple((one.also, one.name) for one in message.known_names),
        medium_model=message.medium_model,
        low_model=message.low_model,
        profile=Profile(message.profile or Profile.FULL),
    )


def receipt_out(receipt: Receipt) -> pb.Receipt:
    return pb.Receipt(
        stage=receipt.stage,
        engine=receipt.engine,
        model=receipt.model,
        calls=receipt.calls,
        tokens_in=receipt.tokens_in,
        tokens_out=receipt.tokens_out,
        tokens_cached=receipt.tokens_cached,
        milliseconds=receipt.milliseconds,
        prompt_version=receipt.prompt_version,
    )
