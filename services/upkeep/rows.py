"""Rows: the vector row that everything searchable should have, and how a stored one differs from it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.domain.graph import Entity, Span, Statement
from services.domain.ids import Revision
from services.domain.memory import Episode, Passage, VoiceAspect
from services.domain.scope import Scope
from services.stores.vectors import rows
from services.stores.vectors.port import Collection, Vector, VectorRow
from services.stores.vectors.rows import Hull

_NONE = np.zeros(0, dtype=np.float32)
_COLUMNS = ("valid_at", "invalid_at", "created_at", "aspect", "subject", "object", "session")


@dataclass(frozen=True, slots=True)
class Expected:
    """A row as it should be, its vector apart, and the text that the vector is of.

    `least` is a narrower hull that will do: that of published spans, where unpublished ones are there too.
    """

    collection: Collection
    row: VectorRow
    text: str
    least: Hull | None = None

    def differs(self, stored: VectorRow) -> str:
        """The columns that differ, in words; "" when none does."""
        return ", ".join(name for name in _COLUMNS if not self._fits(name, stored))

    def with_vector(self, vector: Vector) -> VectorRow:
        """The whole row."""
        return replace(self.row, vector=vector)

    def _fits(self, name: str, stored: VectorRow) -> bool:
        value, wanted = getattr(stored, name), getattr(self.row, name)
        if self.least is None or name not in ("valid_at", "invalid_at"):
            return bool(value == wanted)
        if name == "valid_at":
            return bool(wanted <= value <= self.least[0])
        return bool(self.least[1] <= value <= wanted)


def of_statement(
    statement: Statement, spans: Sequence[Span], known_at: Revision, archived: bool = False
) -> Expected | None:
    """None for one whose text was forgotten."""
    published = rows.hulls(span for span in spans if span.known_from <= known_at)
    text = rows.statement_text(statement)
    if not text:
        return None
    every = rows.hulls(spans).get(statement.id, rows.NEVER)
    return Expected(
        Collection.ARCHIVE if archived else Collection.STATEMENTS,
        rows.statement_row(statement, every, _NONE),
        text,
        published.get(statement.id, rows.NEVER),
    )


def of_entity(entity: Entity) -> Expected | None:
    """None for a predicate, and for one whose text was forgotten."""
    text = rows.entity_text(entity)
    return Expected(Collection.ENTITIES, rows.entity_row(entity, _NONE), text) if text else None


def of_voice(aspect: VoiceAspect) -> Expected | None:
    """None for one whose text was forgotten."""
    text = rows.voice_text(aspect)
    return Expected(Collection.VOICE, rows.voice_row(aspect, _NONE), text) if text else None


def of_passage(scope: Scope, passage: Passage, episode: Episode) -> Expected | None:
    """None for what is not searched for."""
    text = rows.passage_text(passage)
    row = rows.passage_row(scope, passage, episode, _NONE)
    return Expected(Collection.PASSAGES, row, text) if text else None
