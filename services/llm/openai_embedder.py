"""Embeddings of any OpenAI-compatible endpoint."""

import asyncio
from collections.abc import Sequence

import numpy as np

from services.llm import tokens
from services.llm.openai_engine.endpoint import Endpoint
from services.llm.port import Vectors
from services.llm.settings import EmbeddingSettings
from services.llm.vectors import sendable, unit


class OpenAIEmbedder:
    """An Embedder on an endpoint of its own. `aclose` closes it.

    Batches go out at the same time, as far as the endpoint's limits allow.
    """

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._endpoint = Endpoint(settings)

    @property
    def name(self) -> str:
        return f"openai-{self._settings.model}-{self._settings.dimension}"

    @property
    def dimension(self) -> int:
        return self._settings.dimension

    async def passages(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(texts, self._settings.passage_prefix)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(texts, self._settings.query_prefix)

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _embed(self, raw: Sequence[str], prefix: str) -> Vectors:
        settings = self._settings
        texts = [tokens.truncate(prefix + sendable(text), settings.max_tokens_per_text) for text in raw]
        shortened = settings.dimension if settings.send_dimension else None
        batches = [texts[at : at + settings.batch_size] for at in range(0, len(texts), settings.batch_size)]
        try:
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(self._batch(batch, shortened)) for batch in batches]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        empty = np.empty((0, settings.dimension), np.float32)
        return np.concatenate([empty, *(task.result() for task in running)])

    async def _batch(self, texts: Sequence[str], dimension: int | None) -> Vectors:
        rows = await self._endpoint.embed(self._settings.model, texts, dimension)
        return unit(rows, self._settings.dimension)
