"""The vector contract on the array double."""

import pytest

from services.stores.vectors.port import VectorStore
from tests.contracts.vector_store import DIMENSION, VectorStoreContract
from tests.doubles.vectors import ArrayVectorStore


class TestArrayVectors(VectorStoreContract):
    @pytest.fixture
    def store(self) -> VectorStore:
        return ArrayVectorStore(DIMENSION)
