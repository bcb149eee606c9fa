"""The graph suite on PostgreSQL, under row-level security."""

import pytest

from services.stores.graph.port import GraphStore
from services.stores.graph.sql import SqlGraphStore
from services.stores.sql.engine import postgres_engine
from tests.contracts.graph_store import GraphStoreContract


@pytest.mark.postgres
class TestPostgresGraph(GraphStoreContract):
    @pytest.fixture
    def place(self, server_url: str) -> str:
        return server_url

    async def make_store(self, place: str) -> GraphStore:
        return await SqlGraphStore.open(postgres_engine(place), migrate=False)
