"""The vector contract on Milvus Lite, and what only a server has: flushes, restarts, loss."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.stores.errors import StoreUnavailable
from services.stores.vectors.lite import LiteServer
from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore
from services.stores.vectors.port import Collection, VectorFilter, VectorRow, VectorStore
from tests.contracts.vector_filters import (
    FILTERS,
    OPERATIONS,
    ROWS,
    SEEDS,
    WHERE,
    Operations,
    agree,
    find_alike,
)
from tests.contracts.vector_models import MoreVectorModels
from tests.contracts.vector_reembed import ReembedContract
from tests.contracts.vector_store import DIMENSION, FACTS, VectorStoreContract, axis, fresh_scope
from tests.examples import sampled

pytestmark = pytest.mark.milvus

EMBEDDER = "axes"


@pytest.fixture
async def store(milvus_lite: LiteServer) -> AsyncIterator[MilvusVectorStore]:
    store = MilvusVectorStore(MilvusOptions(milvus_lite.uri, EMBEDDER, DIMENSION, flush_rows=200))
    yield store
    await store.close()


class TestMilvusLiteVectors(VectorStoreContract):
    """Rows here are flushed at 200, so that batches of the contract cross it."""


class TestMilvusLiteModels(MoreVectorModels, ReembedContract):
    @pytest.fixture
    def uri(self, milvus_lite: LiteServer) -> str:
        return milvus_lite.uri


class TestSeveralProcesses:
    async def test_writers_with_clients_of_their_own_lose_nothing(self, milvus_lite: LiteServer) -> None:
        scope = fresh_scope()
        options = MilvusOptions(milvus_lite.uri, EMBEDDER, DIMENSION, f"t{scope.key}", flush_rows=50)
        stores = [MilvusVectorStore(options) for _ in range(4)]

        async def write(number: int, store: VectorStore) -> None:
            for turn in range(10):
                rows = [VectorRow(f"w{number}-{turn}-{i}", axis(i % DIMENSION)) for i in range(20)]
                await store.upsert(scope, FACTS, rows)

        try:
            # All four also meet while making the collection.
            await asyncio.gather(*(write(number, store) for number, store in enumerate(stores)))
            assert [await store.count(scope, FACTS) for store in stores] == [800] * 4
        finally:
            for store in stores:
                await store.close()


class TestFlush:
    async def test_rows_are_flushed_some_time_after_the_last_write(self, milvus_lite: LiteServer) -> None:
        scope = fresh_scope()
        store = MilvusVectorStore(MilvusOptions(milvus_lite.uri, EMBEDDER, DIMENSION, flush_seconds=0.01))
        try:
            await store.upsert(scope, FACTS, [VectorRow("x", axis(0))])
            assert store.unflushed == 1
            async with asyncio.timeout(20):
                while store.unflushed:  # noqa: ASYNC110 - what is waited for happens in the store's own time
                    await asyncio.sleep(0.01)
            assert await store.count(scope, FACTS) == 1
        finally:
            await store.close()

    async def test_as_many_rows_as_the_options_say_are_flushed_at_once(self, milvus_lite: LiteServer) -> None:
        scope = fresh_scope()
        options = MilvusOptions(milvus_lite.uri, EMBEDDER, DIMENSION, flush_rows=3, flush_seconds=3_600)
        store = MilvusVectorStore(options)
        try:
            await store.upsert(scope, FACTS, [VectorRow("x", axis(0)), VectorRow("y", axis(0))])
            assert store.unflushed == 2
            await store.upsert(scope, FACTS, [VectorRow("z", axis(0))])
            assert store.unflushed == 0
        finally:
            await store.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LiteServer]:
    """A server that a test may stop or kill."""
    with LiteServer.start(tmp_path / "data", tmp_path / "milvus.log") as server:
        yield server


def again(server: LiteServer, tmp_path: Path) -> LiteServer:
    return LiteServer.start(tmp_path / "data", tmp_path / "milvus.log", port=server.port)


class TestServerLoss:
    @pytest.mark.parametrize("flushed", sampled([False, True]))
    @pytest.mark.parametrize("end", sampled([LiteServer.kill, LiteServer.stop]))
    async def test_rows_outlive_a_restart_and_a_crash(
        self, own: LiteServer, tmp_path: Path, end: object, flushed: bool
    ) -> None:
        scope = fresh_scope()
        store = MilvusVectorStore(MilvusOptions(own.uri, EMBEDDER, DIMENSION))
        try:
            await store.upsert(scope, FACTS, [VectorRow("x", axis(0)), VectorRow("y", axis(1))])
            if flushed:
                await store.flush()
            await store.delete(scope, FACTS, ["y"])
            assert callable(end)
            await asyncio.to_thread(end, own)
            with await asyncio.to_thread(again, own, tmp_path):
                assert list(await store.fetch(scope, FACTS, ["x", "y"])) == ["x"]
                [hits] = await store.search(scope, FACTS, [axis(0)], 5)
                assert [hit.id for hit in hits] == ["x"]
                await store.upsert(scope, Collection.VOICE, [VectorRow("v", axis(2))])
        finally:
            await store.close()

    async def test_a_lost_server_is_unavailable_until_it_is_back(
        self, own: LiteServer, tmp_path: Path
    ) -> None:
        scope = fresh_scope()
        # Far more patience than the test has: the answer must come from the refusal, not from the deadline.
        options = MilvusOptions(own.uri, EMBEDDER, DIMENSION, timeout_seconds=600, setup_seconds=600)
        store = MilvusVectorStore(options)
        try:
            await store.upsert(scope, FACTS, [VectorRow("x", axis(0))])
            await asyncio.to_thread(own.kill)
            for call in (
                store.search(scope, FACTS, [axis(0)], 1),
                store.upsert(scope, FACTS, [VectorRow("y", axis(1))]),
                store.fetch(scope, FACTS, ["x"]),
                store.delete(scope, FACTS, ["x"]),
                store.count(scope, FACTS),
                store.count(scope, Collection.LABELS),
                store.erase(scope),
                store.flush(),
            ):
                with pytest.raises(StoreUnavailable) as raised:
                    await call
                assert str(raised.value) == "the vectors store can't be reached"
            with await asyncio.to_thread(again, own, tmp_path):
                assert list(await store.fetch(scope, FACTS, ["x", "y"])) == ["x"]
                await store.flush()
        finally:
            await store.close()

    async def test_a_server_that_never_was_is_unavailable(self, own: LiteServer) -> None:
        await asyncio.to_thread(own.stop)
        store = MilvusVectorStore(MilvusOptions(own.uri, EMBEDDER, DIMENSION, timeout_seconds=600))
        with pytest.raises(StoreUnavailable):
            await store.count(fresh_scope(), FACTS)
        await store.close()

    async def test_a_server_that_does_not_answer_is_unavailable(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
            store = MilvusVectorStore(MilvusOptions(uri, EMBEDDER, DIMENSION, timeout_seconds=0.2))
            with pytest.raises(StoreUnavailable):
                await store.count(fresh_scope(), FACTS)
            await store.close()

    async def test_a_server_that_lost_its_data_gets_its_collections_anew(
        self, own: LiteServer, tmp_path: Path
    ) -> None:
        scope = fresh_scope()
        store = MilvusVectorStore(MilvusOptions(own.uri, EMBEDDER, DIMENSION))
        try:
            await store.upsert(scope, FACTS, [VectorRow("x", axis(0))])
            await asyncio.to_thread(own.stop)
            empty = await asyncio.to_thread(
                LiteServer.start, tmp_path / "other", tmp_path / "milvus.log", own.port
            )
            with empty:
                assert await store.count(scope, FACTS) == 0
                await store.upsert(scope, FACTS, [VectorRow("x", axis(0))])
                assert await store.count(scope, FACTS) == 1
        finally:
            await store.close()


class TestAgreement:
    @settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(rows=ROWS, filters=FILTERS, flushed=st.booleans(), seed=SEEDS)
    async def test_any_filter_finds_what_it_finds_in_arrays(
        self,
        store: MilvusVectorStore,
        rows: list[VectorRow],
        filters: list[VectorFilter],
        flushed: bool,
        seed: int,
    ) -> None:
        await find_alike(store, rows, filters, flushed, seed)

    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(operations=OPERATIONS, last=WHERE, seed=SEEDS)
    async def test_the_server_answers_as_arrays_do(
        self, store: MilvusVectorStore, operations: Operations, last: VectorFilter, seed: int
    ) -> None:
        await agree(store, operations, last, seed)
