"""Vectors in Milvus: the embedded server (Milvus Lite) and the real one (2.3 and later), in one schema."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
import structlog
from pymilvus import AsyncMilvusClient, DataType, MilvusException
from pymilvus.client.types import Status

from services.domain.scope import Scope
from services.stores.errors import StoreError, StoreUnavailable
from services.stores.paging import Listed, Page
from services.stores.vectors import filters, layout, scanning
from services.stores.vectors.port import Collection, Consistency, Hit, Vector, VectorFilter, VectorRow

log = structlog.get_logger(__name__)

T = TypeVar("T")
ClientMethod = Callable[..., Awaitable[Any]]
"""A method of AsyncMilvusClient, unbound; most take a collection's name first."""

_BATCH_ROWS = 500
_BATCH_KEYS = 1_000
_BATCH_QUERIES = 256
"""Bounds a message: 500 rows of 3,072 floats are 6 MB, under every server's limit."""

_PARTITIONS = 64
"""Buckets that scopes are hashed into on a real server."""

_MAX_FLUSH_SECONDS = 60.0

_RETRIES = 1
"""pymilvus tries 75 times unless told: here once more, over a new connection, which is what a restarted
server needs. Deadlines are ours."""

_CHANNEL = {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_reconnect_backoff_ms": 1_000,
    "grpc.keepalive_permit_without_calls": 0,
}
"""A new connection must really be tried: by default channels to one address share their waiting time. And
Milvus Lite's server cuts off who pings an idle connection every 10 s, as pymilvus would."""

_CODE_GONE = frozenset({100, 101})
"""Collection not found, not loaded: another process dropped it, or the server lost its data directory."""

_FINAL = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""Answers that another try would not change."""


@dataclass(frozen=True, slots=True)
class MilvusOptions:
    """Where the server is, and whose vectors these are."""

    uri: str
    embedder: str
    """Names the collections, with the dimension: vectors of two models never meet."""
    dimension: int
    token: str = field(default="", repr=False)
    timeout_seconds: float = 10.0
    """For a call. Connecting, making a collection and erasing may take `setup_seconds`."""
    setup_seconds: float = 60.0
    index: str = "AUTOINDEX"
    """The kind of vector index on a real server. Milvus Lite gets none: its scan is exact."""
    flush_rows: int = 1_000
    """Milvus Lite scans unflushed rows in Python, at some 35 µs a row and search; so flush at this many,"""
    flush_seconds: float = 2.0
    """or this long after the first of them."""


class _CollectionGone(StoreError):
    """The server doesn't have, or hasn't loaded, a collection that was there."""


class MilvusVectorStore:
    """The vector port over one Milvus server. Connects at first use; belongs to one event loop.

    A row's key is its scope and id, and its scope is the partition key: a filter on the scope is part of
    every search. SESSION reads the writes of this process; for those of others read BOUNDED and wait, or
    STRONG. Milvus Lite has but one copy, so there every level is strong.
    """

    def __init__(self, options: MilvusOptions) -> None:
        self._options = options
        self._client = AsyncMilvusClient(
            options.uri,
            token=options.token,
            dedicated=True,
            timeout=options.timeout_seconds,
            grpc_options=_CHANNEL,
        )
        self._known_server: _Server | None = None
        self._ready: set[str] = set()
        self._setup = asyncio.Lock()
        self._unflushed: Counter[str] = Counter()
        self._deletions: Counter[str] = Counter()
        self._flusher: asyncio.Task[None] | None = None
        _quiet_client()

    @property
    def dimension(self) -> int:
        return self._options.dimension

    @property
    def unflushed(self) -> int:
        """Rows and deletions that this process wrote and Milvus Lite has yet to flush."""
        return self._unflushed.total()

    async def upsert(self, scope: Scope, collection: Collection, rows: Sequence[VectorRow]) -> None:
        checked = layout.checked_rows(rows, self.dimension)
        for batch in _batches(checked, _BATCH_ROWS):
            data = [layout.stored(scope, row) for row in batch]
            if (await self._server()).upserts:
                await self._on(collection, AsyncMilvusClient.upsert, data=data)
            else:
                keys = filters.of_keys(scope, [row.id for row in batch])
                await self._on(collection, AsyncMilvusClient.delete, filter=keys)
                await self._on(collection, AsyncMilvusClient.insert, data=data)
            await self._wrote(collection, len(batch))

    async def search(
        self,
        scope: Scope,
        collection: Collection,
        vectors: Sequence[Vector],
        limit: int,
        where: VectorFilter = VectorFilter(),  # noqa: B008 - a frozen value
        consistency: Consistency = Consistency.SESSION,
    ) -> Sequence[Sequence[Hit]]:
        layout.checked_limit(limit)
        asked = [layout.checked_vector(vector, self.dimension) for vector in vectors]
        expression = filters.expression(scope, where)
        found: list[list[Hit]] = []
        for batch in _batches(asked, _BATCH_QUERIES):
            answers = await self._read(
                collection,
                consistency,
                AsyncMilvusClient.search,
                data=batch,
                filter=expression,
                limit=limit,
                output_fields=["id"],
                anns_field="vector",
                search_params={"metric_type": "COSINE"},
            )
            for hits in answers:
                found.append(layout.ranked([(filters.id_of(hit["id"]), hit["distance"]) for hit in hits]))
        return found

    async def fetch(
        self, scope: Scope, collection: Collection, ids: Sequence[str]
    ) -> Mapping[str, VectorRow]:
        rows: dict[str, VectorRow] = {}
        for batch in _batches(list(dict.fromkeys(ids)), _BATCH_KEYS):
            expression = filters.of_keys(scope, batch)
            found = await self._query(collection, expression, layout.STORED, Consistency.SESSION)
            read = {row.id: row for row in map(layout.read, found)}
            rows |= {id: read[id] for id in batch if id in read}
        return rows

    async def delete(self, scope: Scope, collection: Collection, ids: Sequence[str]) -> None:
        for batch in _batches(list(dict.fromkeys(ids)), _BATCH_KEYS):
            await self._on(collection, AsyncMilvusClient.delete, filter=filters.of_keys(scope, batch))
            self._deletions[self._name(collection)] += 1
            await self._wrote(collection, len(batch))

    async def count(
        self, scope: Scope, collection: Collection, consistency: Consistency = Consistency.SESSION
    ) -> int:
        answer = await self._query(collection, filters.of_scope(scope), ("count(*)",), consistency)
        return int(answer[0]["count(*)"])

    async def scan(self, scope: Scope, collection: Collection, page: Page) -> Listed[str]:
        strong, after = Consistency.STRONG, page.after
        while True:
            rest = await self._query(collection, filters.between(scope, after, ""), ("count(*)",), strong)
            bound = scanning.until(after, int(rest[0]["count(*)"]), page.size)
            found = await self._query(collection, filters.between(scope, after, bound), ("id",), strong)
            ids = sorted(filters.id_of(row["id"]) for row in found)
            if len(ids) > page.size:
                return Listed(ids[: page.size], ids[page.size - 1])
            if ids or not bound:
                return Listed(ids, bound)
            after = bound

    async def erase(self, scope: Scope) -> None:
        """Deletes the scope's rows in the collections of every embedder, former ones included.

        The rows leave the disk when the server next compacts.
        """
        lite = (await self._server()).lite
        seconds = self._options.setup_seconds
        for name in filter(layout.is_ours, await self._call(AsyncMilvusClient.list_collections)):
            if not lite:
                await self._call(AsyncMilvusClient.load_collection, name, seconds=seconds)
            await self._call(AsyncMilvusClient.delete, name, seconds=seconds, filter=filters.of_scope(scope))
            self._deletions[name] += 1
            if lite:
                await self._call(AsyncMilvusClient.flush, name, seconds=seconds)

    async def flush(self) -> None:
        """Has Milvus Lite write its rows to segments. A real server does so by itself."""
        while self._unflushed:
            name, rows = self._unflushed.popitem()
            try:
                await self._call(AsyncMilvusClient.flush, name, seconds=self._options.setup_seconds)
            except BaseException:
                self._unflushed[name] += rows
                raise

    async def close(self) -> None:
        """Flushes what this process wrote, if the server is there, and closes the connection. Idempotent."""
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
            self._flusher = None
        try:
            await self.flush()
        except StoreError as error:
            log.warning("vectors not flushed at close", error=str(error))
        self._unflushed.clear()
        await self._client.close()

    async def _query(
        self, collection: Collection, expression: str, columns: Sequence[str], consistency: Consistency
    ) -> Sequence[Mapping[str, Any]]:
        answer: Sequence[Mapping[str, Any]] = await self._read(
            collection, consistency, AsyncMilvusClient.query, filter=expression, output_fields=list(columns)
        )
        return answer

    async def _read(
        self, collection: Collection, consistency: Consistency, method: ClientMethod, **arguments: Any
    ) -> Any:
        # Servers don't say when they deleted, so a session that did must wait for everything, once.
        name = self._name(collection)
        deletions = self._deletions[name]
        if consistency is Consistency.SESSION and deletions:
            consistency = Consistency.STRONG
        answer = await self._on(collection, method, consistency_level=consistency.value, **arguments)
        if consistency is Consistency.STRONG and self._deletions[name] == deletions:
            self._deletions[name] = 0
        return answer

    def _name(self, collection: Collection) -> str:
        return layout.collection_name(collection, self._options.embedder, self.dimension)

    async def _on(self, collection: Collection, method: ClientMethod, **arguments: Any) -> Any:
        """Calls a method on a collection, which is made when it isn't there."""
        name = self._name(collection)
        await self._make(name)
        try:
            return await self._call(method, name, **arguments)
        except _CollectionGone:
            self._ready.discard(name)
            await self._make(name)
            return await self._call(method, name, **arguments)

    async def _make(self, name: str) -> None:
        if name in self._ready:
            return
        lite = (await self._server()).lite
        async with self._setup:
            if name not in self._ready:
                await self._make_collection(name)
                if not lite:
                    await self._make_searchable(name)
                self._ready.add(name)

    async def _make_collection(self, name: str) -> None:
        if await self._call(AsyncMilvusClient.has_collection, name):
            return
        try:
            await self._call(
                AsyncMilvusClient.create_collection,
                name,
                seconds=self._options.setup_seconds,
                schema=_schema(self.dimension),
                num_partitions=_PARTITIONS,
            )
        except StoreError:
            # Another process may have been first.
            if not await self._call(AsyncMilvusClient.has_collection, name):
                raise

    async def _make_searchable(self, name: str) -> None:
        index = AsyncMilvusClient.prepare_index_params()
        index.add_index("vector", index_type=self._options.index, metric_type="COSINE")
        seconds = self._options.setup_seconds
        await self._call(AsyncMilvusClient.create_index, name, seconds=seconds, index_params=index)
        await self._call(AsyncMilvusClient.load_collection, name, seconds=seconds)

    async def _server(self) -> "_Server":
        if self._known_server is None:
            self._known_server = _server(await self._call(AsyncMilvusClient.get_server_version))
        return self._known_server

    async def _call(
        self, method: ClientMethod, *names: str, seconds: float | None = None, **arguments: Any
    ) -> Any:
        """Calls the client within a time. Raises StoreUnavailable, _CollectionGone or StoreError."""
        try:
            async with asyncio.timeout(seconds or self._options.timeout_seconds):
                return await method(self._client, *names, retry_times=_RETRIES, **arguments)
        except (MilvusException, grpc.RpcError, TimeoutError) as error:
            raise _translated(error) from error

    async def _wrote(self, collection: Collection, rows: int) -> None:
        if not (await self._server()).lite:
            return
        self._unflushed[self._name(collection)] += rows
        if max(self._unflushed.values()) >= self._options.flush_rows:
            await self.flush()
        elif self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush_later())

    async def _flush_later(self) -> None:
        seconds = self._options.flush_seconds
        while self._unflushed:
            await asyncio.sleep(seconds)
            try:
                await self.flush()
            except StoreError as error:
                seconds = min(2 * seconds, _MAX_FLUSH_SECONDS)
                log.warning("vectors not flushed", error=str(error), again_in_seconds=seconds)


@dataclass(frozen=True, slots=True)
class _Server:
    """What a server is, and can do."""

    lite: bool
    upserts: bool
    """2.3 files upserted rows under another partition than searches of their scope look in."""


def _server(version: str) -> _Server:
    number = re.match(r"v?(\d+)\.(\d+)", version)
    old = number is not None and (int(number[1]), int(number[2])) < (2, 4)
    return _Server(lite=version.startswith("milvus_lite"), upserts=not old)


def _translated(error: Exception) -> StoreError:
    """The port's error for one of the client's."""
    match error:
        case MilvusException(code=code) if code in _CODE_GONE:
            return _CollectionGone("a collection of vectors is gone")
        case MilvusException(code=code) if not (
            isinstance(code, grpc.StatusCode) or code == Status.CONNECT_FAILED or error.retriable
        ):
            return StoreError(f"the vectors store refused a call with code {code}")
        case grpc.RpcError() if error.code() in _FINAL:
            return StoreError(f"the vectors store refused a call with {error.code().name}")
        case _:
            return StoreUnavailable("vectors")


def _schema(dimension: int) -> Any:
    schema = AsyncMilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, max_length=128, is_primary=True)
    schema.add_field("scope", DataType.VARCHAR, max_length=64, is_partition_key=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    for column in layout.TIME_COLUMNS:
        schema.add_field(column, DataType.INT64)
    for column in layout.FILTER_COLUMNS:
        schema.add_field(column, DataType.VARCHAR, max_length=64)
    return schema


def _batches(items: Sequence[T], size: int) -> Sequence[list[T]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def _quiet_client() -> None:
    # The client logs every error with a traceback before raising it: once is enough, where it is handled.
    for name in ("pymilvus.decorators", "pymilvus.client.connection_manager"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
