"""Parts: the stores of one installation as upkeep sees them, and what it asks of others."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from services.domain.ids import EpisodeId, RecordId, Revision, StatementId, VoiceId
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.graph.port import GraphStore
from services.stores.memory.archive import ArchiveStore
from services.stores.memory.port import (
    DecisionLog,
    ReadingStore,
    RevisionLog,
    SnapshotStore,
    SummaryStore,
    TextStore,
    VoiceStore,
)
from services.stores.paging import Listed, Page
from services.stores.vectors.port import VectorStore

T = TypeVar("T")

PAGE = 200
"""Items looked at together: bounds memory, and how long a store is kept busy by one question."""


class Embeds(Protocol):
    """What turns texts into vectors; services/llm/port.py has the whole of it."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def passages(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors, shape (len(texts), dimension)."""
        ...


class Mends(Protocol):
    """Repairs that change what is believed: each a revision of the graph, or the end of one begun.

    Idempotent by what is mended and `found_at`, the revision in which it was found broken. Raises
    StoreUnavailable, and Conflict and EngineError as publishing does.
    """

    async def settle(self, scope: Scope) -> None:
        """Completes a revision that was begun and not published."""
        ...

    async def derive_again(
        self,
        scope: Scope,
        found_at: Revision,
        statements: Sequence[StatementId],
        unsupported: Sequence[StatementId],
    ) -> Revision:
        """Publishes the spans that follow from the records; of `unsupported`, which loses its text, too."""
        ...

    async def revoke_voice(
        self, scope: Scope, found_at: Revision, claims: Mapping[RecordId, VoiceId]
    ) -> Revision:
        """Takes back claims of voice aspects; an aspect that no other claim supports loses its text."""
        ...

    async def revoke_episode(self, scope: Scope, found_at: Revision, episode: EpisodeId) -> Revision:
        """Takes back all that an episode said."""
        ...


@dataclass(frozen=True, slots=True)
class Stores:
    """One set of stores, and the embedder whose vectors it holds."""

    graph: GraphStore
    text: TextStore
    voice: VoiceStore
    revisions: RevisionLog
    decisions: DecisionLog
    readings: ReadingStore
    archive: ArchiveStore
    summaries: SummaryStore
    snapshots: SnapshotStore
    """Of what readers hold in memory: dropped by whoever changes rows that no revision tells."""
    vectors: VectorStore
    embedder: Embeds
    now: Callable[[], Instant]


async def pages(
    list_page: Callable[[Page], Awaitable[Listed[T]]], size: int = PAGE
) -> AsyncIterator[Sequence[T]]:
    """The pages of a list that are not empty, one after the other."""
    after = ""
    while True:
        listed = await list_page(Page(size, after))
        if listed.items:
            yield listed.items
        if not listed.after:
            return
        after = listed.after
