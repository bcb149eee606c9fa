"""Items: everything of a graph that is copied, as values that also read and write as one line of JSON."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from pydantic import TypeAdapter

from services.domain.graph import Entity, Span, Statement
from services.domain.identity import Merge
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.memory import DocumentVersion, Episode, Passage, VoiceAspect
from services.domain.predicates import Declared
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.summaries import Persona, SessionSummary
from services.stores.graph.port import Alias
from services.stores.memory.archive import Moved
from services.stores.memory.port import Decision, RevisionEntry
from services.stores.vectors.port import Vector


@dataclass(frozen=True, slots=True)
class Point:
    """What a copy is of: a graph as published in `revision`, and text saved until `until`."""

    revision: Revision
    until: Instant


class Part(StrEnum):
    """Kinds of items, in the order in which they can be written: each needs those before it."""

    ENTITIES = "entities"
    ALIASES = "aliases"
    STATEMENTS = "statements"
    VERDICTS = "verdicts"
    ARCHIVE = "archive"
    EPISODES = "episodes"
    PASSAGES = "passages"
    VERSIONS = "versions"
    VOICE = "voice"
    MERGES = "merges"
    DECLARATIONS = "declarations"
    DECISIONS = "decisions"
    SUMMARIES = "summaries"
    PERSONA = "persona"
    REVISIONS = "revisions"


# `vector`: 32-bit floats, little-endian, as base64; "" where it is not kept.


@dataclass(frozen=True, slots=True)
class EntityItem:
    entity: Entity
    vector: str = ""


@dataclass(frozen=True, slots=True)
class StatementItem:
    """A statement with its records and spans, revoked and past ones included."""

    statement: Statement
    claims: tuple[Claim, ...]
    ends: tuple[End, ...]
    denials: tuple[Denial, ...]
    spans: tuple[Span, ...]
    vector: str = ""


@dataclass(frozen=True, slots=True)
class PassageItem:
    passage: Passage
    vector: str = ""


@dataclass(frozen=True, slots=True)
class VoiceItem:
    """An aspect with all its claims and ends."""

    aspect: VoiceAspect
    vector: str = ""


Item: TypeAlias = (
    EntityItem
    | Alias
    | StatementItem
    | Verdict
    | Moved
    | Episode
    | PassageItem
    | DocumentVersion
    | VoiceItem
    | Merge
    | Declared
    | Decision
    | SessionSummary
    | Persona
    | RevisionEntry
)

_KINDS: Mapping[Part, type[Any]] = {
    Part.ENTITIES: EntityItem,
    Part.ALIASES: Alias,
    Part.STATEMENTS: StatementItem,
    Part.VERDICTS: Verdict,
    Part.ARCHIVE: Moved,
    Part.EPISODES: Episode,
    Part.PASSAGES: PassageItem,
    Part.VERSIONS: DocumentVersion,
    Part.VOICE: VoiceItem,
    Part.MERGES: Merge,
    Part.DECLARATIONS: Declared,
    Part.DECISIONS: Decision,
    Part.SUMMARIES: SessionSummary,
    Part.PERSONA: Persona,
    Part.REVISIONS: RevisionEntry,
}
_PARTS = {kind: part for part, kind in _KINDS.items()}
_ADAPTERS = {part: TypeAdapter[Any](kind) for part, kind in _KINDS.items()}


def part_of(item: Item) -> Part:
    return _PARTS[type(item)]


def to_json(item: Item) -> bytes:
    """One line, without its end."""
    return _ADAPTERS[part_of(item)].dump_json(item)


def from_json(part: Part, line: bytes) -> Item:
    """Raises ValueError for a line that is no such item."""
    item: Item = _ADAPTERS[part].validate_json(line)
    if isinstance(item, Persona) and not item.version:
        raise ValueError("a persona that is kept has a version")
    return item


def packed(vector: Vector) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def unpacked(text: str) -> Vector:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float32)
