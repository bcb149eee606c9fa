"""Parts: what the recall service stands on."""

from dataclasses import dataclass, field

from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.llm.port import Embedder
from services.recall.behind import Behind
from services.recall.facts_index import FactsIndex
from services.recall.hot.kept import LEAST_ROWS, Kept, NothingKept
from services.recall.revisions import WAIT_SECONDS
from services.recall.settings import RecallSettings
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
from services.stores.memory.snapshots import SnapshotKind, SnapshotStore
from services.stores.vectors.port import VectorStore


@dataclass(frozen=True, slots=True)
class Options:
    """How much memory the indexes of lately used graphs may take, how long a revision is waited for."""

    facts_bytes: int = 256 * 1024 * 1024
    """Statements and names with their postings and vectors, of all graphs together; as much again for
    those with an archive."""
    texts_bytes: int = 256 * 1024 * 1024
    """The same of passages and voice aspects."""
    hot: bool = True
    """Whether questions are answered from memory where their graph is held; else from the stores alone."""
    snapshots: bool = True
    """Whether what is held is kept for who starts cold, and read by them."""
    least_kept_rows: int = LEAST_ROWS
    """Rows of what is kept for who starts cold; of fewer the stores are read as quickly."""
    wait_seconds: float = WAIT_SECONDS
    """How long `min_revision` is waited for."""


def options_of(settings: RecallSettings) -> Options:
    """Half of the memory for facts, half for texts."""
    half = settings.hot_mebibytes * 1024 * 1024 // 2
    return Options(facts_bytes=half, texts_bytes=half, hot=settings.hot, snapshots=settings.snapshots)


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
    snapshots: SnapshotStore
    summaries: SummaryStore
    vectors: VectorStore
    embedder: Embedder
    vocabulary: Vocabulary
    options: Options = field(default_factory=Options)
    behind: Behind = field(default_factory=Behind)

    def facts_shelf(self, lexicons: Lexicons, *, whole: bool = False) -> Shelf[FactsIndex]:
        """What is in memory of the facts of lately used graphs: of what is not archived, or of the whole."""
        archive, kind = (None, SnapshotKind.WHOLE) if whole else (self.archive, SnapshotKind.FACTS)
        stores, most = (self.graph, lexicons, self.revisions, self.vectors), self.options.facts_bytes
        return Shelf(
            lambda scope: FactsIndex(*stores, scope, most, self.behind, archive),
            lambda scope: self._kept(scope, kind),
            most,
            self.behind,
        )

    def texts_shelf(self) -> Shelf[TextsIndex]:
        """What is in memory of the passages and the voice of lately used graphs."""
        stores, most = (self.text, self.voice, self.revisions, self.vectors), self.options.texts_bytes
        return Shelf(
            lambda scope: TextsIndex(*stores, scope, most, self.behind),
            lambda scope: self._kept(scope, SnapshotKind.TEXTS),
            most,
            self.behind,
        )

    def _kept(self, scope: Scope, kind: SnapshotKind) -> Kept:
        store = self.snapshots if self.options.snapshots else NothingKept()
        return Kept(store, self.behind, scope, kind, self.options.least_kept_rows)
