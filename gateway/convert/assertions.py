"""Claims, ends and denials of AssertTriples as services take them."""

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from gateway.convert.names import aspect_in, entity_type_in
from gateway.convert.times import instant_of, precision_in
from palimpsest.internal.v1 import resolver_pb2, values_pb2
from palimpsest.v1 import entity_pb2, memory_ingest_pb2
from services.domain.errors import ValidationFailed, Violation
from services.domain.graph import Literal, LiteralKind
from services.domain.instants import Instant, moment
from services.domain.names import literal as normalised

Input = memory_ingest_pb2.ClaimInput | memory_ingest_pb2.EndInput | memory_ingest_pb2.DenialInput


@dataclass(frozen=True, slots=True)
class Asserted:
    """One assertion without its episode, and the sentence that is kept as its evidence."""

    message: resolver_pb2.Assertion
    line: str

    @property
    def attested_at(self) -> Instant:
        return Instant(self.message.attested_at)


def assertions_in(
    request: memory_ingest_pb2.AssertTriplesRequest, accepted_at: Instant
) -> Sequence[Asserted]:
    """Claims, then ends, then denials, each in the request's order."""
    default = _time(request, "reference_time", accepted_at)
    return [
        *(_claim(claim, default) for claim in request.claims),
        *(_end(end, default) for end in request.ends),
        *(_denial(denial, default) for denial in request.denials),
    ]


def mention_in(ref: entity_pb2.EntityRef) -> values_pb2.Mention:
    return values_pb2.Mention(name=ref.name, type=entity_type_in(ref.type), id=ref.entity_id)


def literal_in(literal: entity_pb2.Literal) -> values_pb2.Literal:
    match literal.WhichOneof("value"):
        case "number_value":
            return values_pb2.Literal(kind=LiteralKind.NUMBER, text=repr(literal.number_value))
        case "bool_value":
            return values_pb2.Literal(kind=LiteralKind.BOOLEAN, text=str(literal.bool_value).lower())
        case "time_value":
            time = moment(instant_of(literal.time_value))
            return values_pb2.Literal(kind=LiteralKind.TIME, text=time.isoformat())
        case _:
            return values_pb2.Literal(kind=LiteralKind.STRING, text=literal.string_value)


def normal_literal(literal: entity_pb2.Literal) -> Literal:
    """A literal as statements hold it. Raises ValidationFailed for one that no statement can hold."""
    given = literal_in(literal)
    try:
        return normalised(LiteralKind(given.kind), given.text)
    except ValueError as error:
        raise ValidationFailed(Violation("object.literal", str(error), "literal.value")) from error


def _claim(claim: memory_ingest_pb2.ClaimInput, default: Instant) -> Asserted:
    message = _assertion(claim, values_pb2.FACT_KIND_CLAIM, default)
    message.fact = claim.fact
    message.aspect = aspect_in(claim.aspect)
    _set(message, "start", claim, "valid_at")
    _set(message, "end", claim, "invalid_at")
    _set(message, "seen", claim, "seen")
    message.start_precision = precision_in(claim.valid_at_precision)
    message.end_precision = precision_in(claim.invalid_at_precision)
    period = _since(message.start if message.HasField("start") else None)
    return Asserted(message, claim.quote or f"{claim.fact or _triple(claim)}{period}")


def _end(end: memory_ingest_pb2.EndInput, default: Instant) -> Asserted:
    message = _assertion(end, values_pb2.FACT_KIND_END, default)
    _set(message, "end", end, "ended_at")
    message.end_precision = precision_in(end.ended_at_precision)
    return Asserted(message, end.quote or f"{_triple(end)}: ended {_day(Instant(message.end))}")


def _denial(denial: memory_ingest_pb2.DenialInput, default: Instant) -> Asserted:
    message = _assertion(denial, values_pb2.FACT_KIND_DENIAL, default)
    _set(message, "start", denial, "denied_from")
    _set(message, "end", denial, "denied_until")
    return Asserted(message, denial.quote or f"{_triple(denial)}: not so")


def _assertion(given: Input, kind: values_pb2.FactKind.ValueType, default: Instant) -> resolver_pb2.Assertion:
    return resolver_pb2.Assertion(
        kind=kind,
        subject=mention_in(given.subject),
        predicate=given.predicate,
        object=_target(given.object),
        attested_at=_time(given, "reference_time", default),
        confidence=given.confidence if given.HasField("confidence") else 1.0,
        quote=given.quote,
    )


def _target(ref: entity_pb2.ObjectRef) -> values_pb2.Target:
    if ref.HasField("literal"):
        return values_pb2.Target(literal=literal_in(ref.literal))
    return values_pb2.Target(mention=mention_in(ref.entity))


def _set(message: resolver_pb2.Assertion, field: str, given: Input, name: str) -> None:
    if given.HasField(name):  # type: ignore[arg-type]  # the name is one of the message's own
        setattr(message, field, instant_of(getattr(given, name)))


def _time(given: Input | memory_ingest_pb2.AssertTriplesRequest, name: str, default: Instant) -> Instant:
    time: Timestamp = getattr(given, name)
    return instant_of(time) if given.HasField(name) else default  # type: ignore[arg-type]  # as above


def _triple(given: Input) -> str:
    target = given.object
    named = (
        literal_in(target.literal).text
        if target.HasField("literal")
        else target.entity.name or target.entity.entity_id
    )
    subject = given.subject.name or given.subject.entity_id
    return f"{subject} {given.predicate.replace('_', ' ')} {named}"


def _since(start: int | None) -> str:
    return "" if start is None else f" since {_day(Instant(start))}"


def _day(at: Instant) -> str:
    return moment(at).date().isoformat()
