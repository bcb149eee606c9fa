"""Enums of the public API to and from the domain's own names."""

from palimpsest.v1 import entity_pb2, episode_pb2, errors_pb2, statement_pb2, voice_pb2
from services.domain.graph import EntityType, GraphAspect
from services.domain.memory import EpisodeKind, Role, VoiceKind

ENTITY_TYPES = {
    kind: entity_pb2.EntityType.Value(f"ENTITY_TYPE_{kind.upper()}")
    for kind in EntityType
    if kind is not EntityType.UNKNOWN
} | {EntityType.UNKNOWN: entity_pb2.ENTITY_TYPE_UNSPECIFIED}
ASPECTS = {
    aspect: statement_pb2.GraphAspect.Value(f"GRAPH_ASPECT_{aspect.upper()}") for aspect in GraphAspect
}
VOICE_KINDS = {
    kind: voice_pb2.VoiceAspectKind.Value(f"VOICE_ASPECT_KIND_{kind.upper()}") for kind in VoiceKind
}
EPISODE_KINDS = {kind: episode_pb2.EpisodeKind.Value(f"EPISODE_KIND_{kind.upper()}") for kind in EpisodeKind}
ROLES = {
    Role.USER: episode_pb2.MESSAGE_ROLE_USER,
    Role.ASSISTANT: episode_pb2.MESSAGE_ROLE_ASSISTANT,
    Role.SYSTEM: episode_pb2.MESSAGE_ROLE_SYSTEM,
    Role.NONE: episode_pb2.MESSAGE_ROLE_UNSPECIFIED,
}

_TYPES_IN = {number: kind for kind, number in ENTITY_TYPES.items()}
_ASPECTS_IN = {number: aspect for aspect, number in ASPECTS.items()}
_VOICE_IN = {number: kind for kind, number in VOICE_KINDS.items()}
_KINDS_IN = {number: kind for kind, number in EPISODE_KINDS.items()}
# A tool speaks as the assistant does: its words count only where the user confirms them.
_ROLES_IN = {number: role for role, number in ROLES.items()} | {episode_pb2.MESSAGE_ROLE_TOOL: Role.ASSISTANT}


def entity_type_out(name: str) -> entity_pb2.EntityType.ValueType:
    return ENTITY_TYPES[EntityType(name)]


def entity_type_in(number: entity_pb2.EntityType.ValueType) -> EntityType:
    return _TYPES_IN[number]


def aspect_out(name: str) -> statement_pb2.GraphAspect.ValueType:
    """Unclassified ("") is UNSPECIFIED."""
    return ASPECTS[GraphAspect(name)] if name else statement_pb2.GRAPH_ASPECT_UNSPECIFIED


def aspect_in(number: statement_pb2.GraphAspect.ValueType) -> str:
    """UNSPECIFIED is unclassified ("")."""
    return _ASPECTS_IN[number] if number else ""


def voice_kind_out(name: str) -> voice_pb2.VoiceAspectKind.ValueType:
    return VOICE_KINDS[VoiceKind(name)]


def voice_kind_in(number: voice_pb2.VoiceAspectKind.ValueType) -> VoiceKind:
    return _VOICE_IN[number]


def episode_kind_out(name: str) -> episode_pb2.EpisodeKind.ValueType:
    return EPISODE_KINDS[EpisodeKind(name)]


def episode_kind_in(number: episode_pb2.EpisodeKind.ValueType) -> EpisodeKind:
    return _KINDS_IN[number]


def role_out(name: str) -> episode_pb2.MessageRole.ValueType:
    return ROLES[Role(name)]


def role_in(number: episode_pb2.MessageRole.ValueType) -> Role:
    return _ROLES_IN[number]


def nothing_out(name: str) -> errors_pb2.NothingReason.ValueType:
    """No reason ("") is UNSPECIFIED."""
    return errors_pb2.NothingReason.Value(f"NOTHING_REASON_{name}" if name else "NOTHING_REASON_UNSPECIFIED")
