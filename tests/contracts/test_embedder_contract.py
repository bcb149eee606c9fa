"""What every embedder must do: the packaged model, an endpoint, the hashed one of the tests."""

from collections.abc import AsyncIterator

import numpy as np
import pytest

from services.llm.local_embedder import LocalEmbedder
from services.llm.openai_embedder import OpenAIEmbedder
from services.llm.port import Embedder
from tests.doubles.embedder import HashEmbedder
from tests.doubles.model_server import ModelServer

TEXTS = [
    "Maya works at Google.",
    "Maya is employed by Google.",
    "The river floods the valley.",
    "主数据库是 MySQL。",
]


class EmbedderContract:
    """The contract. `embedder` is a fixture of the subclass."""

    async def test_vectors_are_unit_floats_one_a_text(self, embedder: Embedder) -> None:
        for embed in (embedder.passages, embedder.queries):
            vectors = await embed(TEXTS)
            assert vectors.shape == (len(TEXTS), embedder.dimension)
            assert vectors.dtype == np.float32
            assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)

    async def test_no_texts_no_vectors(self, embedder: Embedder) -> None:
        assert (await embedder.passages([])).shape == (0, embedder.dimension)

    async def test_the_same_text_has_the_same_vector_wherever_it_stands(self, embedder: Embedder) -> None:
        vectors = await embedder.passages([*TEXTS, TEXTS[0]])
        assert np.array_equal(vectors[0], vectors[-1])
        assert np.allclose(await embedder.passages(TEXTS[::-1]), vectors[3::-1], atol=1e-5)

    async def test_texts_alike_are_nearer_than_strangers(self, embedder: Embedder) -> None:
        vectors = await embedder.passages(TEXTS)
        cosines = vectors @ vectors.T
        assert cosines[0, 1] > cosines[0, 2] + 0.1
        assert cosines[0, 1] > cosines[0, 3] + 0.1

    async def test_a_caller_may_write_into_what_it_got(self, embedder: Embedder) -> None:
        first = await embedder.passages(TEXTS)
        kept = first.copy()
        first[:] = 0
        assert np.allclose(await embedder.passages(TEXTS), kept, atol=1e-5)

    async def test_odd_texts_have_vectors(self, embedder: Embedder) -> None:
        vectors = await embedder.passages(["", " \n", "a\x00b", "\ud800", "x" * 30_000])
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)

    async def test_its_name_can_name_a_collection(self, embedder: Embedder) -> None:
        assert embedder.name
        assert embedder.name == embedder.name.strip()


class TestHashEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashEmbedder()


class TestLocalEmbedder(EmbedderContract):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[Embedder]:
        embedder = LocalEmbedder()
        yield embedder
        await embedder.aclose()


class TestOpenAIEmbedder(EmbedderContract):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[Embedder]:
        with ModelServer() as server:
            embedder = OpenAIEmbedder(server.embedding_settings())
            yield embedder
            await embedder.aclose()
