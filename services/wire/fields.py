"""Optional fields, enums and targets: the small things every conversion needs."""

from google.protobuf.message import Message

from palimpsest.internal.v1 import values_pb2 as pb
from services.domain.facts import FactKind, Mention, StatedTime
from services.domain.graph import EntityType, GraphAspect, Literal, LiteralKind
from services.domain.instants import Instant, Precision

FACT_KINDS = {
    FactKind.CLAIM: pb.FACT_KIND_CLAIM,
    FactKind.END: pb.FACT_KIND_END,
    FactKind.DENIAL: pb.FACT_KIND_DENIAL,
}
_KINDS_OF_FACT = {number: kind for kind, number in FACT_KINDS.items()}


def maybe(message: Message, field: str) -> Instant | None:
    """The instant in an optional int64 field; None when it is absent."""
    return Instant(getattr(message, field)) if message.HasField(field) else None


def fact_kind(number: pb.FactKind.ValueType) -> FactKind:
    """Raises ValueError for a kind that is unspecified or unknown."""
    if number not in _KINDS_OF_FACT:
        raise ValueError("a fact without a kind")
    return _KINDS_OF_FACT[number]


def precision_out(precision: Precision) -> pb.Precision.ValueType:
    return pb.Precision.ValueType(int(precision))


def precision_in(number: pb.Precision.ValueType) -> Precision:
    return Precision(number)


def entity_type(name: str) -> EntityType:
    """UNKNOWN for a name that is no entity type."""
    return EntityType(name) if name in _ENTITY_TYPES else EntityType.UNKNOWN


def graph_aspect(name: str) -> GraphAspect | None:
    """None for a name that is no graph aspect."""
    return GraphAspect(name) if name in _GRAPH_ASPECTS else None


def mention_out(mention: Mention) -> pb.Mention:
    return pb.Mention(name=mention.name, type=mention.type, id=mention.id)


def mention_in(message: pb.Mention) -> Mention:
    return Mention(message.name, entity_type(message.type), message.id)


def target_out(target: Mention | Literal) -> pb.Target:
    if isinstance(target, Literal):
        return pb.Target(literal=pb.Literal(kind=target.kind, text=target.text))
    return pb.Target(mention=mention_out(target))


def target_in(message: pb.Target) -> Mention | Literal:
    """Raises ValueError when neither a mention nor a known kind of literal is set."""
    if message.HasField("literal"):
        return Literal(LiteralKind(message.literal.kind), message.literal.text)
    if message.HasField("mention"):
        return mention_in(message.mention)
    raise ValueError("a triple without an object")


def time_out(time: StatedTime | None) -> pb.StatedTime | None:
    if time is None:
        return None
    return pb.StatedTime(text=time.text, at=time.at, precision=precision_out(time.precision))


def time_in(message: Message, field: str) -> StatedTime | None:
    if not message.HasField(field):
        return None
    time: pb.StatedTime = getattr(message, field)
    return StatedTime(time.text, maybe(time, "at"), precision_in(time.precision))


_ENTITY_TYPES = frozenset(EntityType)
_GRAPH_ASPECTS = frozenset(GraphAspect)
