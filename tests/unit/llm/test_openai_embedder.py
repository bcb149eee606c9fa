"""Embeddings of an OpenAI-compatible endpoint."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from services.llm.openai_embedder import OpenAIEmbedder
from services.llm.port import ModelMisconfigured, ModelOutputInvalid, ModelUnavailable
from services.llm.vectors import unit
from tests.doubles.embedder import HashEmbedder
from tests.doubles.model_server import ModelServer


@asynccontextmanager
async def embedder_on(server: ModelServer, **settings: Any) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(server.embedding_settings(**settings))
    try:
        yield embedder
    finally:
        await embedder.aclose()


async def test_vectors_come_in_the_order_of_texts_and_in_batches() -> None:
    texts = [f"text {number} about {number * 7}" for number in range(10)]
    with ModelServer() as server:
        async with embedder_on(server, batch_size=4) as embedder:
            vectors = await embedder.passages(texts)
            assert (await embedder.passages([])).shape == (0, 64)
    assert np.allclose(vectors, await HashEmbedder(64).passages(texts), atol=1e-6)
    assert sorted(map(len, server.embedded)) == [2, 4, 4]


async def test_questions_and_passages_have_their_prefixes() -> None:
    with ModelServer() as server:
        async with embedder_on(server, query_prefix="query: ", passage_prefix="passage: ") as embedder:
            await embedder.queries(["a"])
            await embedder.passages(["b", "\x00"])
    assert server.embedded == [["query: a"], ["passage: b", "passage: ."]]


async def test_a_text_too_long_for_the_model_is_embedded_by_its_beginning() -> None:
    with ModelServer() as server:
        async with embedder_on(server, max_tokens_per_text=5) as embedder:
            await embedder.passages(["one two three four five six seven"])
    assert server.embedded == [["one two three four five"]]


async def test_another_dimension_is_misconfigured() -> None:
    with ModelServer(dimension=32) as server:
        async with embedder_on(server, dimension=64) as embedder:
            with pytest.raises(ModelMisconfigured):
                await embedder.passages(["a", "b"])
        async with embedder_on(server, dimension=16, send_dimension=True) as embedder:
            assert (await embedder.passages(["a"])).shape == (1, 16)


async def test_an_unknown_model_is_misconfigured_and_a_dead_endpoint_unavailable() -> None:
    with ModelServer() as server:
        async with embedder_on(server, model="unheard-of", batch_size=1) as embedder:
            with pytest.raises(ModelMisconfigured):
                await embedder.passages(["a", "b"])
    async with embedder_on(server) as embedder:
        with pytest.raises(ModelUnavailable):
            await embedder.passages(["a"])


def test_a_vector_without_a_direction_is_refused() -> None:
    for row in ([0.0, 0.0], [float("nan"), 1.0]):
        with pytest.raises(ModelOutputInvalid):
            unit([[1.0, 1.0], row], 2)


async def test_hashed_texts_that_share_words_are_close() -> None:
    embedder = HashEmbedder()
    texts = ["Bob joined the team.", "Bob has joined our team", "主数据库是 MySQL。", "主数据库是什么", ""]
    vectors = await embedder.passages(texts)
    cosines = vectors @ vectors.T
    assert np.allclose(np.diag(cosines), 1, atol=1e-5)
    assert cosines[0, 1] > 0.5 > cosines[0, 2]
    assert cosines[2, 3] > 0.5
    assert np.array_equal(vectors, await embedder.queries(texts))
