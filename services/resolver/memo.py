"""Memo: the engine's answers of one resolution, so that a lost race for the revision asks no model twice."""

from dataclasses import dataclass, field

from services.llm.port import Answer, Receipt
from services.llm.tasks import Judged, JudgedVoice, Pair


@dataclass
class Memo:
    """Answers by the pairs that were asked about, and what they cost."""

    statements: dict[tuple[Pair, ...], Answer[Judged]] = field(default_factory=dict)
    voice: dict[tuple[Pair, ...], JudgedVoice] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
