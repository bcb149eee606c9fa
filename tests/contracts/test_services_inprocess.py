"""The contract of each service, mounted on one grpc.aio server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.services import Services
from services.llm.offline.engine import OfflineEngine
from services.runtime.assertion import Signer
from services.runtime.clock import clock
from services.runtime.inprocess import serve_inprocess
from services.runtime.names import ServiceName
from services.runtime.resources import Resources
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.sql import SqlMemory
from services.stores.sql.engine import engine_for
from tests.contracts.five_services import SECRET, FiveServicesContract
from tests.doubles.embedder import HashEmbedder
from tests.doubles.sqlite_files import laid_url
from tests.doubles.vectors import ArrayVectorStore


class TestServicesInProcess(FiveServicesContract):
    @pytest.fixture
    async def services(self, tmp_path: Path) -> AsyncIterator[Services]:
        embedder = HashEmbedder()
        async with AsyncExitStack() as stack:
            graph = await SqlGraphStore.open(engine_for(laid_url(tmp_path / "graph.db")))
            stack.push_async_callback(graph.close)
            memory = await SqlMemory.open(engine_for(laid_url(tmp_path / "memory.db")))
            stack.push_async_callback(memory.close)
            vectors = ArrayVectorStore(embedder.dimension)
            resources = Resources(graph, memory, vectors, OfflineEngine(), embedder, clock)
            signer = Signer(SECRET.encode(), clock)
            running = await serve_inprocess(resources, signer)
            stack.push_async_callback(running.stop)
            services = Services(dict.fromkeys(ServiceName, running.target), signer)
            stack.push_async_callback(services.close)
            yield services
