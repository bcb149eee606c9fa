"""Embedding anew: every vector of an installation by another embedder, while it goes on being used.

The rows are made from what the other stores hold, into collections that nobody reads yet; then these are in
use, at one moment, and the former ones are dropped. It rests on three things:

* Every writer changes the other stores before the vectors.
* A writer that finds collections of another embedder deletes its rows' copies there, so a copy is missing
  rather than stale.
* What is written here is compared with the other stores again, and taken back where they changed meanwhile.

So whatever is missing is found by looking once more. Rows that are there are not embedded again: a run that
was cut off is gone on with by starting it again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from services.domain.scope import Scope
from services.stores.errors import StoreError
from services.stores.paging import Page
from services.stores.vectors.port import Collection, Vector, VectorRow, VectorStore
from services.stores.vectors.sources import PAGE, Found

BATCH = 64
"""Texts embedded and written at a time: what a crash costs at most."""

ROUNDS = 5
"""How often to look once more before the new vectors are in use, where writers never rest."""

MORE_ROUNDS = 50
"""And afterwards, when writers of the former embedder are stopped and all others write what is missing."""

Embed = Callable[[Sequence[str]], Awaitable[Vector]]
"""Unit vectors of stored texts, shape (len(texts), dimension): the method `passages` of an embedder."""

Scopes = Callable[[], Awaitable[Sequence[Scope]]]
"""Lists every graph there is."""


class NotCaughtUp(StoreError):
    """Rows went missing as fast as they were made. They are in use; starting it again goes on."""


class Reads(Protocol):
    """What every row is made from: see Sources."""

    def pages(self, scope: Scope) -> AsyncIterator[tuple[Collection, Found]]: ...

    async def read(self, scope: Scope, collection: Collection, ids: Sequence[str]) -> Found: ...


class InUse(Protocol):
    """Which embedder's vectors are in use."""

    async def alone(self) -> bool:
        """Whether those of the embedder at hand are in use, and there are no others."""
        ...

    async def use(self) -> None:
        """Those of the embedder at hand, from now on."""
        ...

    async def drop_others(self) -> Sequence[str]:
        """Drops what is not in use; answers the names."""
        ...


class Refill:
    """Fills the collections of `vectors`, whose embedder is `embed`'s. Every method can be repeated.

    Raises StoreUnavailable and what `embed` raises.
    """

    def __init__(self, sources: Reads, embed: Embed, vectors: VectorStore) -> None:
        self._sources = sources
        self._embed = embed
        self._vectors = vectors

    async def fill(self, scope: Scope) -> int:
        """Writes what is missing of one graph and mends what differs; answers how many rows that were."""
        changed = 0
        async for collection, wanted in self._sources.pages(scope):
            if wanted:
                changed += await self._fill_page(scope, collection, wanted)
        return changed

    async def sweep(self, scope: Scope) -> int:
        """Deletes rows of what is not there any more; answers how many.

        Such a row is left by a run that was cut off between writing it and comparing.
        """
        swept = 0
        for collection in Collection:
            after = ""
            while True:
                listed = await self._vectors.scan(scope, collection, Page(PAGE, after))
                found = await self._sources.read(scope, collection, listed.items) if listed.items else {}
                gone = [id for id in listed.items if id not in found or not found[id].text]
                if gone:
                    await self._vectors.delete(scope, collection, gone)
                swept += len(gone)
                if not listed.after:
                    break
                after = listed.after
        return swept

    async def _fill_page(self, scope: Scope, collection: Collection, wanted: Found) -> int:
        there = await self._vectors.fetch(scope, collection, list(wanted))
        missing = [
            id for id, one in wanted.items() if one.text and not (id in there and one.is_vector_of(there[id]))
        ]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            vectors = await self._embed([wanted[id].text for id in batch])
            made = [replace(wanted[id].row, vector=vector) for id, vector in zip(batch, vectors, strict=True)]
            await self._write(scope, collection, made, wanted)
        differ = [
            replace(wanted[id].row, vector=row.vector)
            for id, row in there.items()
            if wanted[id].text and wanted[id].is_vector_of(row) and not wanted[id].fits(row)
        ]
        if differ:
            await self._write(scope, collection, differ, wanted)
        return len(missing) + len(differ)

    async def _write(
        self, scope: Scope, collection: Collection, made: Sequence[VectorRow], wanted: Found
    ) -> None:
        await self._vectors.upsert(scope, collection, made)
        now = await self._sources.read(scope, collection, [row.id for row in made])
        stale = [row.id for row in made if not wanted[row.id].same(now.get(row.id))]
        if stale:
            await self._vectors.delete(scope, collection, stale)


async def reembed(
    refill: Refill,
    in_use: InUse,
    scopes: Scopes,
    pause_seconds: float,
    keep: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> int:
    """Replaces the vectors in use; answers how many rows were written.

    `pause_seconds` is how long a writer may act on what it saw of the vector store, its longest call
    included; 0 where there is no other process. `keep` leaves the former vectors for processes that still
    search them: the next run drops them. Safe to repeat at any point, and by two at once. Raises
    StoreUnavailable, NotCaughtUp and what the embedder raises.
    """

    async def look() -> int:
        return sum([await refill.fill(scope) for scope in await scopes()])

    if await in_use.alone():
        pause_seconds = 0.0  # nobody can have seen another state
    await asyncio.sleep(pause_seconds)
    written = 0
    for number in range(1, ROUNDS + 1):
        done = await look()
        written += done
        say(f"round {number}: {done} rows")
        if not done:
            break
    await in_use.use()
    say("the new vectors are in use")
    await asyncio.sleep(pause_seconds)
    for _ in range(MORE_ROUNDS):
        done = await look()
        written += done
        if not done:
            break
        say(f"caught up with {done} rows")
    else:
        raise NotCaughtUp("rows of the vectors in use went missing as fast as they were made")
    swept = sum([await refill.sweep(scope) for scope in await scopes()])
    if swept:
        say(f"swept {swept} rows of what is not there any more")
    if not keep:
        say(f"dropped {len(await in_use.drop_others())} former collections")
    return written
