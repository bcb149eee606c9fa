"""Memo: the engine's answers of one resolution, so that a lost race for the revision asks no model twice."""

from dataclasses import dataclass, field

from services.domain.ids import EntityId, StatementId, VoiceId
from services.llm.port import Answer, Receipt
from services.llm.tasks import Judged, JudgedEntities, JudgedVoice

EntityPairs = tuple[tuple[EntityId, EntityId], ...]
StatementPairs = tuple[tuple[StatementId, StatementId], ...]
PredicatePairs = tuple[tuple[str, str], ...]
VoicePairs = tuple[tuple[int, VoiceId], ...]
"""A new sentence by its position in the chunk, and the aspect that it was compared with."""


@dataclass
class Memo:
    """Answers by what was asked about, and what they cost.

    By ids: the same positions mean other candidates once another writer has changed the graph.
    """

    entities: dict[EntityPairs, Answer[JudgedEntities] | None] = field(default_factory=dict)
    """None: no answer that could be used."""
    statements: dict[tuple[StatementPairs, PredicatePairs], Answer[Judged] | None] = field(
        default_factory=dict
    )
    voice: dict[VoicePairs, Answer[JudgedVoice]] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
