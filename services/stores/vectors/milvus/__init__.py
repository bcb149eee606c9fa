"""Vectors in Milvus: the embedded server (Milvus Lite) and the real one (2.3 and later), in one schema."""

from services.stores.vectors.milvus.store import MilvusVectorStore as MilvusVectorStore
from services.stores.vectors.options import MilvusOptions as MilvusOptions
from services.stores.vectors.options import Tls as Tls
