"""Memo: the engine's answers of one resolution, so that no model is asked twice about one pair."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from services.domain.ids import EntityId, StatementId, VoiceId
from services.llm.port import Receipt
from services.llm.tasks import EntityVerdict, PairVerdict, PredicateVerdict, VoiceVerdict

VerdictT = TypeVar("VerdictT")

EntityPair = tuple[EntityId, EntityId]
StatementPair = tuple[StatementId, StatementId]
PredicatePair = tuple[str, str]
VoicePair = tuple[VoiceId, VoiceId]
"""A new sentence, and the aspect that it was compared with."""


@dataclass(frozen=True, slots=True)
class Told(Generic[VerdictT]):
    """A verdict, and what it cost: which model and prompt gave it."""

    verdict: VerdictT
    by: Receipt


@dataclass(frozen=True, slots=True)
class Noise:
    """Places of staged facts that are session noise."""

    world: frozenset[int] = frozenset()
    voice: frozenset[int] = frozenset()


@dataclass
class Memo:
    """Verdicts by what was asked about, in the order of the answers; None where nothing was said of it.

    By ids: the same positions mean other candidates once another writer has changed the graph.
    """

    entities: dict[EntityPair, Told[EntityVerdict] | None] = field(default_factory=dict)
    statements: dict[StatementPair, Told[PairVerdict] | None] = field(default_factory=dict)
    predicates: dict[PredicatePair, Told[PredicateVerdict] | None] = field(default_factory=dict)
    voice: dict[VoicePair, Told[VoiceVerdict] | None] = field(default_factory=dict)
    noise: Noise | None = None
    """None: nobody has reflected on the facts."""
    receipts: list[Receipt] = field(default_factory=list)
