"""The vectors of passages: written after the passages are saved, removed before they are."""

from collections.abc import Mapping, Sequence

from services.domain.ids import EpisodeId
from services.domain.memory import Episode, Passage
from services.domain.scope import Scope
from services.llm.port import Embedder
from services.stores.vectors.port import Collection, VectorStore
from services.stores.vectors.rows import passage_row, passage_text

BATCH = 128
"""Passages embedded in one call: enough to fill a model's batch, few enough to bound memory."""


class PassageIndex:
    """Embeds passages and keeps their vectors."""

    def __init__(self, vectors: VectorStore, embedder: Embedder) -> None:
        self._vectors = vectors
        self._embedder = embedder

    async def add(self, scope: Scope, episodes: Sequence[Episode], passages: Sequence[Passage]) -> None:
        """Writes the vectors that are not there yet.

        Raises EngineError and StoreUnavailable; called again, it goes on where it stopped.
        """
        wanted = [one for one in passages if passage_text(one)]
        if not wanted:
            return
        there = await self._vectors.fetch(scope, Collection.PASSAGES, [passage.id for passage in wanted])
        missing = [passage for passage in wanted if passage.id not in there]
        by_id = {episode.id: episode for episode in episodes}
        for start in range(0, len(missing), BATCH):
            await self._write(scope, by_id, missing[start : start + BATCH])

    async def remove(self, scope: Scope, passages: Sequence[Passage]) -> None:
        """Idempotent."""
        if passages:
            await self._vectors.delete(scope, Collection.PASSAGES, [passage.id for passage in passages])

    async def follow(self, scope: Scope, episodes: Sequence[Episode], passages: Sequence[Passage]) -> None:
        """Brings the columns beside the vectors up to date of passages that another episode has now.

        Their text is the same, so nothing is embedded. Idempotent.
        """
        by_id = {episode.id: episode for episode in episodes}
        there = await self._vectors.fetch(scope, Collection.PASSAGES, [passage.id for passage in passages])
        rows = [
            passage_row(scope, passage, by_id[passage.episode], there[passage.id].vector)
            for passage in passages
            if passage.id in there
        ]
        if rows:
            await self._vectors.upsert(scope, Collection.PASSAGES, rows)

    async def _write(
        self, scope: Scope, episodes: Mapping[EpisodeId, Episode], passages: Sequence[Passage]
    ) -> None:
        vectors = await self._embedder.passages([passage_text(passage) for passage in passages])
        rows = [
            passage_row(scope, passage, episodes[passage.episode], vector)
            for passage, vector in zip(passages, vectors, strict=True)
        ]
        await self._vectors.upsert(scope, Collection.PASSAGES, rows)
