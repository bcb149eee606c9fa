"""Models: the collections of each embedder, which of them are in use, and the change from one to another.

Which embedder's vectors are in use is told by one alias on the server, so it changes at one moment for every
kind of row and every process. A process searches by its own embedder's vectors; it may use the store only
while the alias names these. See docs/adr/0011-vectors.md.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pymilvus import AsyncMilvusClient, DataType

from services.stores.errors import StoreError
from services.stores.vectors import layout
from services.stores.vectors.errors import EmbedderDiffers
from services.stores.vectors.milvus.connection import Connection
from services.stores.vectors.options import MilvusOptions
from services.stores.vectors.port import Collection

_PARTITIONS = 64
"""Buckets that scopes are hashed into on a real server."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen on the server, and when (on the monotonic clock)."""

    at: float
    live: str
    others: frozenset[str]


class Models:
    """The collections of one embedder among those of others. `filling`: these are not in use yet."""

    def __init__(self, connection: Connection, options: MilvusOptions, filling: bool = False) -> None:
        self._connection = connection
        self._options = options
        self._filling = filling
        self._setup = asyncio.Lock()
        self._ready = False
        self._seen: _Seen | None = None
        self._alias = layout.live_alias(options.prefix)

    def name(self, collection: Collection) -> str:
        """Of this embedder's collection."""
        return layout.collection_name(self._options.prefix, collection, self._options.fingerprint)

    async def ready(self) -> None:
        """Makes this embedder's collections, all at once, unless they are there.

        The first embedder that comes to an empty server is in use from then on. Raises EmbedderDiffers while
        another one is.
        """
        if not self._ready:
            async with self._setup:
                await self._prepare()

    def lost(self) -> None:
        """A collection was found missing: `ready` looks anew."""
        self._ready = False
        self._seen = None

    async def others(self, collection: Collection) -> Sequence[str]:
        """The collections in which other embedders keep the same rows: there while one replaces another.

        Whoever writes must know, and stops when its own embedder is in use no more: raises EmbedderDiffers.
        What is answered may be `watch_seconds` old. Who fills new collections leaves others alone: none.
        """
        if self._filling:
            return ()
        now, seen = time.monotonic(), self._seen
        if seen is None or now - seen.at >= self._options.watch_seconds:
            names = await self._connection.call(AsyncMilvusClient.list_collections)
            seen = self._seen = _Seen(now, await self._named_live(), self._foreign(names))
        if seen.live != self._options.fingerprint:
            raise EmbedderDiffers(seen.live, self._options.fingerprint)
        return [name for name in seen.others if layout.kind(self._options.prefix, name) is collection]

    async def every(self) -> Sequence[str]:
        """The collections of every embedder."""
        names = await self._connection.call(AsyncMilvusClient.list_collections)
        return [name for name in names if layout.kind(self._options.prefix, name) is not None]

    async def in_use(self) -> str:
        """The fingerprint of the embedder in use; "" on a server that has no vectors of ours."""
        return await self._live()

    async def alone(self) -> bool:
        """Whether this embedder's vectors are in use, and there are no others."""
        return await self._named_live() == self._options.fingerprint and not self._foreign(await self.every())

    async def use(self) -> None:
        """From now on, at one moment, this embedder's vectors are in use. Idempotent."""
        await self.ready()
        target = self.name(Collection.STATEMENTS)
        found = await self._connection.target_of(self._alias)
        if found != target:
            change = AsyncMilvusClient.alter_alias if found else AsyncMilvusClient.create_alias
            await self._connection.setup(change, target, self._alias)

    async def drop_others(self) -> Sequence[str]:
        """Drops the collections of embedders that are not in use. Raises EmbedderDiffers unless ours is."""
        if (live := await self._named_live()) != self._options.fingerprint:
            raise EmbedderDiffers(live, self._options.fingerprint)
        names = sorted(self._foreign(await self.every()))
        for name in names:
            await self._connection.setup(AsyncMilvusClient.drop_collection, name)
        return names

    async def _prepare(self) -> None:
        if self._ready:
            return
        ours = self._options.fingerprint
        if not self._filling and (live := await self._live()) not in ("", ours):
            raise EmbedderDiffers(live, ours)
        names = [self.name(collection) for collection in Collection]
        made = await asyncio.gather(*map(self._make, names), return_exceptions=True)
        for failed in filter(None, made):
            raise failed
        if not self._filling:
            await self._claim()
        self._ready = True

    async def _live(self) -> str:
        """The fingerprint of the embedder in use; "" on a server that has no vectors of ours."""
        if live := await self._named_live():
            return live
        found = {layout.owner(self._options.prefix, name) for name in await self.every()}
        # Collections without an alias: their process ended between making and claiming them.
        return "" if self._options.fingerprint in found or not found else min(found)

    async def _named_live(self) -> str:
        target = await self._connection.target_of(self._alias)
        return layout.owner(self._options.prefix, target) if target else ""

    def _foreign(self, names: Sequence[str]) -> frozenset[str]:
        prefix, ours = self._options.prefix, self._options.fingerprint
        kinds = ((name, layout.kind(prefix, name)) for name in names)
        return frozenset(name for name, kind in kinds if kind and layout.owner(prefix, name) != ours)

    async def _claim(self) -> None:
        ours = self._options.fingerprint
        if await self._named_live() == ours:
            return
        try:
            target = self.name(Collection.STATEMENTS)
            await self._connection.setup(AsyncMilvusClient.create_alias, target, self._alias)
        except StoreError:
            # Another process may have been first.
            if (live := await self._named_live()) == ours:
                return
            if live:
                raise EmbedderDiffers(live, ours) from None
            raise

    async def _make(self, name: str) -> None:
        lite = (await self._connection.server()).lite
        await self._make_collection(name)
        if not lite:
            await self._make_searchable(name)

    async def _make_collection(self, name: str) -> None:
        if await self._connection.call(AsyncMilvusClient.has_collection, name):
            return
        try:
            await self._connection.setup(
                AsyncMilvusClient.create_collection,
                name,
                schema=_schema(self._options.dimension),
                num_partitions=_PARTITIONS,
            )
        except StoreError:
            # Another process may have been first.
            if not await self._connection.call(AsyncMilvusClient.has_collection, name):
                raise

    async def _make_searchable(self, name: str) -> None:
        if await self._connection.call(AsyncMilvusClient.list_indexes, name):
            await self._connection.setup(AsyncMilvusClient.load_collection, name)
            return
        kind = self._options.index
        index = AsyncMilvusClient.prepare_index_params()
        index.add_index("vector", index_type=kind.kind, metric_type="COSINE", params=kind.build())
        await self._connection.setup(AsyncMilvusClient.create_index, name, index_params=index)
        await self._connection.setup(AsyncMilvusClient.load_collection, name)


def _schema(dimension: int) -> Any:
    schema = AsyncMilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, max_length=128, is_primary=True)
    schema.add_field("scope", DataType.VARCHAR, max_length=64, is_partition_key=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    for column in layout.TIME_COLUMNS:
        schema.add_field(column, DataType.INT64)
    for column in layout.TEXT_COLUMNS:
        schema.add_field(column, DataType.VARCHAR, max_length=64)
    return schema
