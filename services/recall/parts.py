"""Parts: what the recall service stands on."""

from collections.abc import Callable
from dataclasses import dataclass, field

from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.llm.port import Embedder
from services.recall.facts_index import FactsIndex
from services.recall.revisions import WAIT_SECONDS
from services.recall.shelf import Shelf
from services.recall.texts_index import TextsIndex
from services.stores.graph.port import GraphStore
from services.stores.memory.archive import ArchiveStore
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import (
    DecisionLog,
    ReadingStore,
    RevisionLog,
    SummaryStore,
    TextStore,
    VoiceStore,
)
from services.stores.vectors.port import VectorStore


@dataclass(frozen=True, slots=True)
class Options:
    """How much memory the indexes of lately used graphs may take, how long a revision is waited for."""

    facts_bytes: int = 192 * 1024 * 1024
    """Postings of statements and names, of all graphs together; as much again for those with an archive."""
    texts_bytes: int = 192 * 1024 * 1024
    """Postings of passages and voice aspects, of all graphs together."""
    wait_seconds: float = WAIT_SECONDS
    """How long `min_revision` is waited for."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Stores, embedder and vocabulary."""

    graph: GraphStore
    text: TextStore
    voice: VoiceStore
    readings: ReadingStore
    archive: ArchiveStore
    revisions: RevisionLog
    decisions: DecisionLog
    summaries: SummaryStore
    vectors: VectorStore
    embedder: Embedder
    vocabulary: Vocabulary
    options: Options = field(default_factory=Options)

    def facts_shelf(self, lexicons: Lexicons, *, whole: bool = False) -> Shelf[FactsIndex]:
        """The indexes of statements of lately used graphs: of what is not archived, or of the whole."""
        archive = None if whole else self.archive
        return Shelf(lambda scope: FactsIndex(self.graph, lexicons, scope, archive), self.options.facts_bytes)

    def texts_shelf(self, on_gone: Callable[[Scope], None]) -> Shelf[TextsIndex]:
        """The indexes of passages and voice of lately used graphs; `on_gone` is told of deleted text."""
        return Shelf(
            lambda scope: TextsIndex(self.text, self.voice, scope, on_gone), self.options.texts_bytes
        )
