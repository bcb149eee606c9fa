"""The graph suite on NebulaGraph: on the double of graphd, or on the cluster of PALIMPSEST_TEST_NEBULA."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest

from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.graph.port import GraphStore
from tests.builders import Maker, a_scope
from tests.contracts.graph_isolation import PAIRS
from tests.contracts.graph_store import GraphStoreContract


@pytest.fixture(scope="module")
def nebula(graphd: str) -> Iterator[NebulaSettings]:
    """A space of the module's own, ready to be used, and gone at the end."""
    settings = NebulaSettings(addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=4, sessions=4)
    asyncio.run(bootstrap(settings))
    yield settings
    asyncio.run(drop(settings))


# The double of graphd is Python in this process: its share of the largest tests is the larger one.
@pytest.mark.timeout(600)
class TestNebulaGraph(GraphStoreContract):
    """All of it. The space is one for all tests: each erases the scopes that it may find filled."""

    @pytest.fixture
    async def place(self, nebula: NebulaSettings) -> str:
        store = NebulaGraphStore(nebula)
        scopes = {a_scope(), a_scope("other"), *(scope for pair in PAIRS for scope in pair)}
        scopes |= {a_scope(f"graph {n}") for n in range(6)}
        for scope in scopes:
            await store.erase(scope)
        await store.close()
        return nebula.model_dump_json(exclude={"password"})

    async def make_store(self, place: str) -> GraphStore:
        return NebulaGraphStore(NebulaSettings.model_validate_json(place))

    @pytest.mark.slow
    async def test_five_thousand_statements(self, store: GraphStore, make: Maker) -> None:
        await super().test_five_thousand_statements(store, make)
