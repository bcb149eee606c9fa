"""The vector port over one Milvus server."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import structlog
from pymilvus import AsyncMilvusClient

from services.domain.scope import Scope
from services.stores.errors import StoreError
from services.stores.paging import Listed, Page
from services.stores.vectors import filters, layout, scanning
from services.stores.vectors.errors import NotErased
from services.stores.vectors.milvus.connection import ClientMethod, CollectionGone, Connection
from services.stores.vectors.milvus.models import Models
from services.stores.vectors.options import MilvusOptions
from services.stores.vectors.port import Collection, Consistency, Hit, Vector, VectorFilter, VectorRow

log = structlog.get_logger(__name__)

T = TypeVar("T")

_BATCH_ROWS = 500
_BATCH_KEYS = 1_000
_BATCH_QUERIES = 256
"""Bounds a message: 500 rows of 3,072 floats are 6 MB, under every server's limit."""

_MAX_FLUSH_SECONDS = 60.0


class MilvusVectorStore:
    """The vector port over one Milvus server. Connects at first use; belongs to one event loop.

    A row's key is its scope and id, and its scope is the partition key: a filter on the scope is part of
    every search. SESSION reads the writes of this process; for those of others read BOUNDED and wait, or
    STRONG. Milvus Lite has but one copy, so there every level is strong.
    """

    def __init__(self, options: MilvusOptions, filling: bool = False) -> None:
        """`filling`: to embed anew, into collections not in use yet. Raises ValueError on a bad prefix."""
        layout.checked_prefix(options.prefix)
        self._options = options
        self._connection = Connection(options)
        self.models = Models(self._connection, options, filling)
        self._unflushed: Counter[str] = Counter()
        self._deletions: Counter[str] = Counter()
        self._written: set[str] = set()
        self._flusher: asyncio.Task[None] | None = None

    @property
    def dimension(self) -> int:
        return self._options.dimension

    @property
    def fingerprint(self) -> str:
        """Names the embedder among others, as EmbedderDiffers does."""
        return self._options.fingerprint

    @property
    def unflushed(self) -> int:
        """Rows and deletions that this process wrote and Milvus Lite has yet to flush."""
        return self._unflushed.total()

    async def ready(self) -> None:
        """Connects and makes what is missing. Raises EmbedderDiffers or StoreUnavailable."""
        await self.models.ready()

    async def upsert(self, scope: Scope, collection: Collection, rows: Sequence[VectorRow]) -> None:
        checked = layout.checked_rows(rows, self.dimension)
        for batch in _batches(checked, _BATCH_ROWS):
            keys = filters.of_keys(scope, [row.id for row in batch])
            data = [layout.stored(scope, row) for row in batch]
            others = await self._to_write(collection)
            if (await self._connection.server()).upserts:
                await self._on(collection, AsyncMilvusClient.upsert, data=data)
            else:
                await self._on(collection, AsyncMilvusClient.delete, filter=keys)
                await self._on(collection, AsyncMilvusClient.insert, data=data)
            self._written.add(self._name(collection))
            await self._wrote(collection, len(batch))
            await self._delete_from(others, keys)

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
                search_params={"metric_type": "COSINE", "params": self._options.index.search(limit)},
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
            keys = filters.of_keys(scope, batch)
            others = await self._to_write(collection)
            await self._on(collection, AsyncMilvusClient.delete, filter=keys)
            self._deletions[self._name(collection)] += 1
            await self._wrote(collection, len(batch))
            await self._delete_from(others, keys)

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

        Returns once a count that waits for all writes finds none; raises NotErased if it does. The rows leave
        the disk when the server next compacts.
        """
        lite = (await self._connection.server()).lite
        rows = filters.of_scope(scope)
        names = await self.models.every()
        for name in names:
            if not lite:
                await self._connection.setup(AsyncMilvusClient.load_collection, name)
            await self._connection.setup(AsyncMilvusClient.delete, name, filter=rows)
            self._deletions[name] += 1
            if lite:
                await self._connection.setup(AsyncMilvusClient.flush, name)
        for name in names:
            left = await self._connection.setup(
                AsyncMilvusClient.query,
                name,
                filter=rows,
                output_fields=["count(*)"],
                consistency_level=Consistency.STRONG.value,
            )
            if int(left[0]["count(*)"]):
                raise NotErased("rows of an erased scope are still there")

    async def flush(self) -> None:
        """Has Milvus Lite write its rows to segments. A real server does so by itself."""
        while self._unflushed:
            name, rows = self._unflushed.popitem()
            try:
                await self._connection.setup(AsyncMilvusClient.flush, name)
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
        await self._connection.close()

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
        name = self._name(collection)
        deletions = self._deletions[name]
        if consistency is Consistency.SESSION:
            consistency = self._session(name)
        answer = await self._on(collection, method, consistency_level=consistency.value, **arguments)
        if consistency is Consistency.STRONG and self._deletions[name] == deletions:
            self._deletions[name] = 0
        return answer

    def _session(self, name: str) -> Consistency:
        """What makes a session read its own writes of a collection."""
        # Servers don't say when they deleted, so a session that did must wait for everything, once.
        if self._deletions[name] or self._options.reads is Consistency.STRONG:
            return Consistency.STRONG
        # A session without a write would read as old a state as it likes; so its reads are bounded at least.
        return Consistency.SESSION if name in self._written else Consistency.BOUNDED

    def _name(self, collection: Collection) -> str:
        return self.models.name(collection)

    async def _on(self, collection: Collection, method: ClientMethod, **arguments: Any) -> Any:
        """Calls a method on a collection, which is made when it isn't there."""
        await self.models.ready()
        try:
            return await self._connection.call(method, self._name(collection), **arguments)
        except CollectionGone:
            self.models.lost()
            await self.models.ready()
            return await self._connection.call(method, self._name(collection), **arguments)

    async def _to_write(self, collection: Collection) -> Sequence[str]:
        """The collections of other embedders where the rows that are written now become stale."""
        await self.models.ready()
        return await self.models.others(collection)

    async def _delete_from(self, names: Sequence[str], keys: str) -> None:
        """Deletes copies of rows in collections of other embedders: who embeds anew makes them again."""
        for name in names:
            try:
                await self._connection.call(AsyncMilvusClient.delete, name, filter=keys)
            except CollectionGone:
                self.models.lost()  # dropped meanwhile

    async def _wrote(self, collection: Collection, rows: int) -> None:
        if not (await self._connection.server()).lite:
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


def _batches(items: Sequence[T], size: int) -> Sequence[list[T]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]
