"""HotVectors: the vectors of one collection of one graph, beside the arrays of what they are of."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import structlog

from services.domain.scope import Scope
from services.recall.behind import Behind
from services.recall.hot.arrays import Matrix
from services.stores.errors import StoreError
from services.stores.vectors.layout import SCORE_DIGITS
from services.stores.vectors.port import Collection, Hit, Vector, VectorStore

log = structlog.get_logger(__name__)

Mask = npt.NDArray[np.bool_]

AT_ONCE = 256
"""So few missing vectors are waited for; more are loaded while questions go to the vector store."""
BATCH = 100
"""Rows that are read together. Milvus Lite does one thing at a time: a search waits for as many."""
TAKEN_AT_ONCE = 500
"""Vectors taken over between two moments in which others are served."""
APART = 16_384
"""Rows from which a search leaves the event loop: searches of one question then run beside each other."""
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
"""How long rows that the store did not have are left before they are asked for again."""


class HotVectors:
    """Searches exactly once every wanted row is there; until then it is `whole` no more, and not asked."""

    def __init__(
        self,
        store: VectorStore,
        behind: Behind,
        scope: Scope,
        collection: Collection,
        digest: Callable[[int], str],
        seconds: Callable[[], float] = time.monotonic,
        apart: int = APART,
    ) -> None:
        """`digest` is of the text at a place: a row of another text counts as missing. `apart`: see APART."""
        self._store = store
        self._behind = behind
        self._scope = scope
        self._collection = collection
        self._digest = digest
        self._seconds = seconds
        self._apart = apart
        self._matrix = Matrix(store.dimension)
        self._loading: asyncio.Task[None] | None = None
        self._pause = FIRST_PAUSE_SECONDS
        self._again_at = 0.0
        self._followed = 0
        self.whole = False

    @property
    def bytes(self) -> int:
        return self._matrix.bytes

    def drop(self, place: int) -> None:
        """What stands at a place reads otherwise now."""
        self._matrix.drop(place)
        self.whole = False

    async def follow(self, ids: Sequence[str], wanted: Mask) -> None:
        """Gets the rows that are wanted and not there: a few at once, many behind the caller's back."""
        if self.whole and len(wanted) == self._followed:
            return
        self._followed = len(wanted)
        missing = self._matrix.missing(wanted)
        self.whole = not len(missing)
        if self.whole or self._seconds() < self._again_at:
            return
        if self._loading is not None and not self._loading.done():
            return
        rows = [(int(place), ids[place]) for place in missing]
        if len(missing) > AT_ONCE:
            self._loading = self._behind.start(lambda: self._load(rows))
            return
        await self._load(rows)
        self.whole = not len(self._matrix.missing(wanted))

    async def take_over(self, ids: Sequence[str], other: Self, there: Sequence[str]) -> None:
        """Before anything is followed: what another index of the same rows has, where texts are the same.

        `there`: the ids of the other's places. The store need not be asked for those.
        """
        places = {id: place for place, id in enumerate(there)}
        for start in range(0, len(ids), TAKEN_AT_ONCE):
            for place, id in enumerate(ids[start : start + TAKEN_AT_ONCE], start):
                old = places.get(id)
                if old is None or not other._matrix.has_at(old) or self._digest(place) != other._digest(old):
                    continue
                self._matrix.take(place, other._matrix, old)
            await asyncio.sleep(0)

    async def loaded(self) -> None:
        """Waits for what is being loaded."""
        if self._loading is not None:
            await self._loading

    async def search(
        self, ids: Sequence[str], vectors: Sequence[Vector], limit: int, mask: Mask
    ) -> list[list[Hit]]:
        """The nearest rows of the mask to each vector, best first; only while `whole`."""
        rows = self._matrix.rows(mask)

        def found() -> list[list[Hit]]:
            every = (rows.nearest(vector, limit, ids, SCORE_DIGITS) for vector in vectors)
            return [[Hit(id, score) for id, score in hits] for hits in every]

        return found() if len(mask) < self._apart else await asyncio.to_thread(found)

    async def _load(self, rows: Sequence[tuple[int, str]]) -> None:
        met = 0
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            try:
                found = await self._store.fetch(self._scope, self._collection, [id for _, id in batch])
            except StoreError as error:
                # Nothing is lost: the search goes to the store, and says itself that it is down,
                # or was closed while rows were loaded behind the last answers.
                log.info("vectors not loaded", collection=self._collection, error=str(error))
                break
            theirs = [(place, found[id]) for place, id in batch if id in found]
            fitting = [(place, row) for place, row in theirs if row.digest in ("", self._digest(place))]
            self._matrix.put([place for place, _ in fitting], [row.vector for _, row in fitting])
            met += len(fitting)
        if met == len(rows):
            self._pause, self._again_at = FIRST_PAUSE_SECONDS, 0.0
            return
        self._again_at = self._seconds() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
