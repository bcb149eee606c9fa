"""Vectors in arrays: the vector port without a server, exact, for tests of what stands on it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from services.domain.instants import BEGINNING, FOREVER
from services.domain.scope import Scope
from services.stores.errors import StoreUnavailable
from services.stores.paging import Listed, Page
from services.stores.vectors import filters, layout
from services.stores.vectors.port import Collection, Consistency, Hit, Vector, VectorFilter, VectorRow


class ArrayVectorStore:
    """Keeps rows in dictionaries. While `down` is True every call raises StoreUnavailable.

    `searched` are the consistencies with which it was searched, `fetched` the ids that were read.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._rows: defaultdict[tuple[str, Collection], dict[str, VectorRow]] = defaultdict(dict)
        self.down = False
        self.searched: list[Consistency] = []
        self.fetched: list[str] = []

    def copy(self) -> Self:
        """Another store with the same rows."""
        other = type(self)(self._dimension)
        other._rows.update({key: dict(rows) for key, rows in self._rows.items()})
        return other

    @property
    def dimension(self) -> int:
        return self._dimension

    async def upsert(self, scope: Scope, collection: Collection, rows: Sequence[VectorRow]) -> None:
        checked = layout.checked_rows(rows, self._dimension)
        self._reach()
        self._rows[scope.key, collection].update({row.id: row for row in checked})

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
        filters.expression(scope, where)  # refuses what the real store refuses
        asked = [_unit(layout.checked_vector(vector, self._dimension)) for vector in vectors]
        self._reach()
        self.searched.append(consistency)
        rows = [row for row in self._rows[scope.key, collection].values() if _matches(row, where)]
        if not rows or not asked:
            return [[] for _ in asked]
        cosines = np.stack(asked) @ np.stack([_unit(row.vector) for row in rows]).T
        return [
            layout.ranked([(row.id, float(cosine)) for row, cosine in zip(rows, line, strict=True)])[:limit]
            for line in cosines
        ]

    async def fetch(
        self, scope: Scope, collection: Collection, ids: Sequence[str]
    ) -> Mapping[str, VectorRow]:
        keys = [filters.checked(id) for id in ids]
        self._reach()
        self.fetched += ids
        rows = self._rows[scope.key, collection]
        return {id: rows[id] for id in keys if id in rows}

    async def delete(self, scope: Scope, collection: Collection, ids: Sequence[str]) -> None:
        keys = [filters.checked(id) for id in ids]
        self._reach()
        for id in keys:
            self._rows[scope.key, collection].pop(id, None)

    async def count(
        self, scope: Scope, collection: Collection, consistency: Consistency = Consistency.SESSION
    ) -> int:
        self._reach()
        return len(self._rows[scope.key, collection])

    async def scan(self, scope: Scope, collection: Collection, page: Page) -> Listed[str]:
        self._reach()
        ids = sorted(id for id in self._rows[scope.key, collection] if id > page.after)
        return Listed(ids[: page.size], ids[page.size - 1] if len(ids) > page.size else "")

    async def erase(self, scope: Scope) -> None:
        self._reach()
        for collection in Collection:
            self._rows.pop((scope.key, collection), None)

    async def flush(self) -> None:
        self._reach()

    async def close(self) -> None:
        pass

    def _reach(self) -> None:
        if self.down:
            raise StoreUnavailable("vectors")


def _unit(vector: Vector) -> Vector:
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def _matches(row: VectorRow, where: VectorFilter) -> bool:
    at, since, until = where.holds_at, where.since, where.until
    begins_open, ends_open = row.valid_at == BEGINNING, row.invalid_at == FOREVER
    listed = (
        (row.aspect, where.aspects),
        (row.subject, where.subjects),
        (row.session, where.sessions),
        (row.id, where.ids),
    )
    return (
        (at is None or ((begins_open or row.valid_at <= at) and (ends_open or at < row.invalid_at)))
        and (since is None or ends_open or since < row.invalid_at)
        and (until is None or begins_open or row.valid_at < until)
        and all(not values or value in values for value, values in listed)
    )
