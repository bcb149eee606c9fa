"""The model passes the suite that it helps to judge others by."""

from services.stores.graph.port import GraphStore
from tests.contracts.graph_store import Capability, GraphStoreContract
from tests.doubles.naive_graph import NaiveGraph


class TestNaiveGraph(GraphStoreContract):
    lacks = {
        Capability.THOUSANDS: "every read of it looks at everything",
        Capability.TWO_OPENERS: "it lies in the memory of one process",
    }

    async def make_store(self, place: str) -> GraphStore:
        return NaiveGraph()
