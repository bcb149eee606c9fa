"""The graph suite on SQLite."""

from pathlib import Path

from services.stores.graph.port import GraphStore
from services.stores.graph.sql import SqlGraphStore
from services.stores.sql.engine import sqlite_engine
from tests.contracts.graph_store import GraphStoreContract
from tests.doubles.sqlite_files import laid


class TestSqliteGraph(GraphStoreContract):
    async def make_store(self, place: str) -> GraphStore:
        return await SqlGraphStore.open(sqlite_engine(laid(Path(place) / "graph.db")))
