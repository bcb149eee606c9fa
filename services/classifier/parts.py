"""Parts: what the classifier stands on."""

from collections.abc import Callable
from dataclasses import dataclass

from services.domain.instants import Instant
from services.llm.port import Embedder, Engine
from services.stores.memory.port import DecisionLog, RevisionLog, SummaryStore


@dataclass(frozen=True, slots=True)
class Parts:
    """Engine and embedder, the store that it writes, the log of decisions; `now` is the clock."""

    engine: Engine
    embedder: Embedder
    summaries: SummaryStore
    decisions: DecisionLog
    revisions: RevisionLog
    now: Callable[[], Instant]
