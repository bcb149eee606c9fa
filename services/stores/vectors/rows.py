"""Rows: what of memory has a vector, the text that is embedded, and the columns beside it.

Whoever writes, verifies or embeds anew makes the same row of the same record.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from services.domain.graph import Entity, EntityType, Span, Statement
from services.domain.headings import is_heading
from services.domain.ids import StatementId, session_key
from services.domain.instants import BEGINNING, FOREVER, Instant
from services.domain.memory import Episode, Passage, VoiceAspect
from services.domain.recalled import is_recalled
from services.domain.scope import Scope
from services.stores.vectors.port import Vector, VectorRow

Hull: TypeAlias = tuple[Instant, Instant]
"""The earliest start and the latest end of all spans of a statement, past beliefs included."""

NEVER: Hull = (FOREVER, BEGINNING)
"""Of a statement that was never believed: a neighbour of what is said, which no question of a time finds."""


def hulls(spans: Iterable[Span]) -> Mapping[StatementId, Hull]:
    """The hull of each statement that has a span, believed or not."""
    found: dict[StatementId, Hull] = {}
    for span in spans:
        first = BEGINNING if span.valid_at is None else span.valid_at
        last = FOREVER if span.invalid_at is None else span.invalid_at
        known = found.get(span.statement, (first, last))
        found[span.statement] = (min(known[0], first), max(known[1], last))
    return found


def digest(text: str) -> str:
    """16 hex digits by which a vector is known to be of this text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def statement_text(statement: Statement) -> str:
    """What a statement is embedded by; "" once it is forgotten, and then it has no row."""
    return statement.fact


def statement_row(statement: Statement, hull: Hull, vector: Vector) -> VectorRow:
    return VectorRow(
        id=statement.id,
        vector=vector,
        valid_at=hull[0],
        invalid_at=hull[1],
        created_at=statement.created_at,
        aspect=statement.aspect or "",
        subject=statement.subject,
        object=statement.object if isinstance(statement.object, str) else "",
        digest=digest(statement_text(statement)),
    )


def passage_text(passage: Passage) -> str:
    """What a passage is embedded by; "" where it has no row.

    Headings are not searched for, what this memory recalled must not be found as evidence of itself, and
    what is held back is not found at all.
    """
    silent = passage.held or is_heading(passage.text) or is_recalled(passage.text)
    return "" if silent else passage.with_speaker


def passage_row(scope: Scope, passage: Passage, episode: Episode, vector: Vector) -> VectorRow:
    """`episode` is the passage's own."""
    said_at = episode.reference_time if passage.said_at is None else passage.said_at
    session = "" if episode.session is None else session_key(scope, episode.session)
    return VectorRow(
        passage.id,
        vector,
        valid_at=said_at,
        created_at=said_at,
        session=session,
        digest=digest(passage_text(passage)),
    )


def entity_text(entity: Entity) -> str:
    """What an entity is embedded by; "" for predicates and for what is forgotten, which have no row."""
    return "" if entity.type is EntityType.PREDICATE else entity.name


def entity_row(entity: Entity, vector: Vector) -> VectorRow:
    return VectorRow(entity.id, vector, digest=digest(entity_text(entity)))


def voice_text(aspect: VoiceAspect) -> str:
    """What a voice aspect is embedded by; "" once it is forgotten, and then it has no row."""
    return aspect.text


def voice_row(aspect: VoiceAspect, vector: Vector) -> VectorRow:
    return VectorRow(aspect.id, vector, aspect=aspect.kind, digest=digest(voice_text(aspect)))
