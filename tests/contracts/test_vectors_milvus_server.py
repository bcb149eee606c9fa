"""The vector contract on a real Milvus server, named by PALIMPSEST_TEST_MILVUS (`http://127.0.0.1:19530`)."""

import os
from collections.abc import AsyncIterator

import pytest

from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore
from tests.contracts.vector_store import DIMENSION, VectorStoreContract

SERVER = "PALIMPSEST_TEST_MILVUS"


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get(SERVER), reason=f"{SERVER} names no Milvus server")
class TestMilvusServerVectors(VectorStoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[MilvusVectorStore]:
        store = MilvusVectorStore(MilvusOptions(os.environ[SERVER], "axes", DIMENSION, timeout_seconds=60))
        yield store
        await store.close()
