"""The vector contract on the real Milvus server, 2.3.5."""

from collections.abc import AsyncIterator

import pytest

from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore
from tests.contracts.vector_models import VectorModelsContract
from tests.contracts.vector_reembed import ReembedContract
from tests.contracts.vector_store import DIMENSION, VectorStoreContract
from tests.doubles.milvus_server import MilvusServer

pytestmark = pytest.mark.milvus


class TestMilvusServerVectors(VectorStoreContract):
    @pytest.fixture
    async def store(self, milvus_server: MilvusServer) -> AsyncIterator[MilvusVectorStore]:
        store = MilvusVectorStore(MilvusOptions(milvus_server.uri, "axes", DIMENSION, timeout_seconds=60))
        yield store
        await store.close()


class TestMilvusServerModels(VectorModelsContract, ReembedContract):
    @pytest.fixture
    def uri(self, milvus_server: MilvusServer) -> str:
        return milvus_server.uri
