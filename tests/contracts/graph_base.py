"""What the parts of the graph suite share: how a store is made, and what a store may lack."""

from collections.abc import AsyncIterator, Mapping
from enum import Enum
from pathlib import Path

import pytest

from services.stores.graph.port import GraphStore
from tests.builders import Maker, a_scope


class Capability(Enum):
    """What a store may lack, by name and with a reason."""

    WHOLE_COMMITS = "at a revision that isn't published, a reader sees all of its commit or nothing"
    THOUSANDS = "thousands of statements in one graph"
    TWO_OPENERS = "two stores over the same data, as two processes would have them"


class GraphSuite:
    """Subclasses give `make_store`, `place` where the data lie, and `lacks` what they can't, with reasons."""

    lacks: Mapping[Capability, str] = {}

    async def make_store(self, place: str) -> GraphStore:
        """A store over the data at `place`, empty when it is first made there."""
        raise NotImplementedError

    def needs(self, capability: Capability) -> None:
        """Skips the running test by the reason for which the store lacks this."""
        if capability in self.lacks:
            pytest.skip(f"{capability.name}: {self.lacks[capability]}")

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)

    @pytest.fixture
    async def store(self, place: str) -> AsyncIterator[GraphStore]:
        store = await self.make_store(place)
        yield store
        await store.close()

    @pytest.fixture
    def make(self) -> Maker:
        return Maker(a_scope())
