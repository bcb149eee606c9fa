"""Moving rows between two collections, and searching both as if they were one."""

import asyncio
from collections.abc import Mapping, Sequence

from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.vectors.layout import ranked
from services.stores.vectors.port import (
    Collection,
    Consistency,
    Hit,
    Vector,
    VectorFilter,
    VectorRow,
    VectorStore,
)

_ROWS = 256
"""Rows moved at a time."""


async def move(
    vectors: VectorStore, scope: Scope, ids: Sequence[str], source: Collection, target: Collection
) -> None:
    """Rows of these ids, unchanged. Idempotent: at each moment a row is in one of the two, or in both.

    One that is in `target` already stays as it is there.
    """
    for chunk in in_chunks(ids, _ROWS):
        rows = await vectors.fetch(scope, source, chunk)
        if not rows:
            continue
        there = await vectors.fetch(scope, target, list(rows))
        await vectors.upsert(scope, target, [row for id, row in rows.items() if id not in there])
        await vectors.delete(scope, source, list(rows))


async def fetch_statements(vectors: VectorStore, scope: Scope, ids: Sequence[str]) -> Mapping[str, VectorRow]:
    """Rows of statements by id, wherever they lie; absent ones are left out."""
    found = dict(await vectors.fetch(scope, Collection.STATEMENTS, ids))
    missing = [id for id in ids if id not in found]
    if missing:
        found.update(await vectors.fetch(scope, Collection.ARCHIVE, missing))
    return found


async def search_statements(
    vectors: VectorStore,
    scope: Scope,
    asked: Sequence[Vector],
    limit: int,
    where: VectorFilter = VectorFilter(),  # noqa: B008 - a frozen value
    consistency: Consistency = Consistency.SESSION,
) -> Sequence[Sequence[Hit]]:
    """For each vector its nearest statements, archived or not: as if none were."""
    near, far = await asyncio.gather(
        *(
            vectors.search(scope, collection, asked, limit, where, consistency)
            for collection in (Collection.STATEMENTS, Collection.ARCHIVE)
        )
    )
    return [_both(one, other, limit) for one, other in zip(near, far, strict=True)]


def _both(one: Sequence[Hit], other: Sequence[Hit], limit: int) -> Sequence[Hit]:
    scores = {hit.id: hit.score for hit in (*one, *other)}
    return ranked(list(scores.items()))[:limit]
