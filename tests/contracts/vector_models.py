"""What a Milvus server must do while one embedder replaces another. A server's test gives `uri`."""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest

from services.stores.errors import StoreUnavailable
from services.stores.vectors.errors import EmbedderDiffers
from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore
from services.stores.vectors.port import Collection, Consistency, Vector, VectorRow
from tests.contracts.vector_store import FACTS, fresh_scope

Open = Callable[..., MilvusVectorStore]
"""Opens a store of an embedder's name and dimension, in an installation of the test's own."""


def along(index: int, dimension: int) -> Vector:
    vector = np.zeros(dimension, dtype=np.float32)
    vector[index] = 1.0
    return vector


class StoresOfAnEmbedder:
    """Subclasses give the fixture `uri`."""

    @pytest.fixture
    async def opened(self, uri: str) -> AsyncIterator[Open]:
        stores: list[MilvusVectorStore] = []
        prefix = f"t{uuid.uuid4().hex[:12]}"

        def opened(embedder: str, dimension: int, **options: Any) -> MilvusVectorStore:
            filling = options.pop("filling", False)
            chosen = {"prefix": prefix, "watch_seconds": 0.0, "timeout_seconds": 30.0, **options}
            stores.append(MilvusVectorStore(MilvusOptions(uri, embedder, dimension, **chosen), filling))
            return stores[-1]

        yield opened
        for store in stores:
            await store.close()


class VectorModelsContract(StoresOfAnEmbedder):
    """Subclasses give the fixture `uri`."""

    async def test_one_embedder_replaces_another_while_both_are_written(self, opened: Open) -> None:
        scope = fresh_scope()
        old, new, early = opened("old", 4), opened("new", 8, filling=True), opened("new", 8)
        await old.upsert(scope, FACTS, [VectorRow("x", along(0, 4)), VectorRow("y", along(1, 4))])
        with pytest.raises(EmbedderDiffers) as raised:
            await early.search(scope, FACTS, [along(0, 8)], 5)
        assert (raised.value.live, raised.value.ours) == ("old_4_v2", "new_8_v2")

        await new.upsert(scope, FACTS, [VectorRow("x", along(0, 8)), VectorRow("y", along(1, 8))])
        assert await old.count(scope, FACTS) == 2, "what fills new collections leaves those in use alone"
        await old.upsert(scope, FACTS, [VectorRow("x", along(2, 4))])
        await old.delete(scope, FACTS, ["y"])
        assert await new.count(scope, FACTS, Consistency.STRONG) == 0, "both copies are stale"
        with pytest.raises(EmbedderDiffers):
            await early.count(scope, FACTS)

        await new.upsert(scope, FACTS, [VectorRow("x", along(2, 8))])
        await new.models.use()
        [[hit]] = await early.search(scope, FACTS, [along(2, 8)], 5, consistency=Consistency.STRONG)
        assert hit.id == "x"
        assert await old.count(scope, FACTS) == 1, "who searches goes on in what it has"
        for write in (
            old.upsert(scope, FACTS, [VectorRow("z", along(0, 4))]),
            old.delete(scope, FACTS, ["x"]),
        ):
            with pytest.raises(EmbedderDiffers):
                await write

        await early.upsert(scope, FACTS, [VectorRow("late", along(3, 8))])
        with pytest.raises(EmbedderDiffers):
            await old.models.drop_others()
        assert not await new.models.alone()
        dropped = await new.models.drop_others()
        assert len(dropped) == len(Collection)
        assert await new.models.alone()
        assert await new.models.drop_others() == []
        with pytest.raises(EmbedderDiffers):
            await old.search(scope, FACTS, [along(0, 4)], 1)
        assert await early.count(scope, FACTS, Consistency.STRONG) == 2


class MoreVectorModels(VectorModelsContract):
    """What needs many collections, each of which takes a real server seconds to load."""

    async def test_embedders_that_are_named_alike_are_told_apart(self, opened: Open) -> None:
        names = [("axes", 4), ("Axes", 4), ("axes/", 4), ("axes", 5)]
        stores = [opened(name, dimension, filling=True) for name, dimension in names]
        scope = fresh_scope()
        for store in stores:
            await store.upsert(scope, FACTS, [VectorRow("x", along(0, store.dimension))])
        assert len({store.models.name(FACTS) for store in stores}) == len(stores)
        assert [await store.count(scope, FACTS, Consistency.STRONG) for store in stores] == [1] * 4

    async def test_of_embedders_that_come_to_an_empty_server_at_once_one_is_in_use(
        self, opened: Open
    ) -> None:
        stores = [opened(f"embedder{i}", 4) for i in range(3)]
        for _ in range(2):
            made = await asyncio.gather(*(store.ready() for store in stores), return_exceptions=True)
            assert sum(one is None for one in made) == 1
            assert sum(isinstance(one, EmbedderDiffers) for one in made) == 2

    async def test_installations_that_share_a_server_do_not_meet(self, opened: Open) -> None:
        scope, letters = fresh_scope(), itertools.cycle("ab")
        one, two = (opened("axes", dimension, prefix=f"p{scope.key}{next(letters)}") for dimension in (4, 5))
        await one.upsert(scope, FACTS, [VectorRow("x", along(0, 4))])
        await two.upsert(scope, FACTS, [VectorRow("x", along(0, 5))])
        await two.erase(scope)
        await two.models.drop_others()
        assert await one.count(scope, FACTS, Consistency.STRONG) == 1

    @pytest.mark.parametrize("prefix", ["", "9a", "a_b", "A", "a" * 33, "a-b", "a\n"])
    def test_a_prefix_that_could_be_taken_for_another_is_refused(self, uri: str, prefix: str) -> None:
        with pytest.raises(ValueError, match="prefix"):
            MilvusVectorStore(MilvusOptions(uri, "axes", 4, prefix))

    async def test_an_erasure_reaches_the_vectors_of_every_embedder(self, opened: Open) -> None:
        scope, other = fresh_scope(), fresh_scope()
        old, new = opened("old", 4), opened("new", 8, filling=True)
        for owner in (scope, other):
            await old.upsert(owner, FACTS, [VectorRow("x", along(0, 4))])
            await new.upsert(owner, FACTS, [VectorRow("x", along(0, 8))])
        await old.erase(scope)
        assert [await store.count(scope, FACTS, Consistency.STRONG) for store in (old, new)] == [0, 0]
        assert [await store.count(other, FACTS, Consistency.STRONG) for store in (old, new)] == [1, 1]

    async def test_a_writer_that_looks_seldom_is_told_in_time(self, opened: Open) -> None:
        scope = fresh_scope()
        old, new = opened("old", 4, watch_seconds=0.2), opened("new", 8, filling=True)
        await old.upsert(scope, FACTS, [VectorRow("x", along(0, 4))])
        await new.models.use()

        async def write_on() -> None:
            while True:
                await old.upsert(scope, FACTS, [VectorRow("x", along(0, 4))])
                await asyncio.sleep(0.02)

        with pytest.raises(StoreUnavailable, match="palimpsest-admin reembed") as raised:
            await asyncio.wait_for(write_on(), 20)
        assert raised.value.component == "vectors"

    async def test_a_former_embedder_can_be_used_again(self, opened: Open) -> None:
        scope = fresh_scope()
        old, new = opened("old", 4), opened("new", 8, filling=True)
        await old.upsert(scope, FACTS, [VectorRow("x", along(0, 4)), VectorRow("y", along(1, 4))])
        await new.models.use()
        using = opened("new", 8)
        await using.upsert(scope, FACTS, [VectorRow("x", along(0, 8))])
        back = opened("old", 4, filling=True)
        assert list(await back.fetch(scope, FACTS, ["x", "y"])) == ["y"], "what was written since is stale"
        await back.models.use()
        with pytest.raises(EmbedderDiffers):
            await using.delete(scope, FACTS, ["x"])
        await old.delete(scope, FACTS, ["y"])
        assert await old.count(scope, FACTS) == 0
