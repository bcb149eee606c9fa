"""The vector port: dense search in one scope, filtered by columns, never by user text.

Every method raises StoreUnavailable when the store can't be reached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from services.domain.instants import BEGINNING, FOREVER, Instant
from services.domain.scope import Scope
from services.stores.paging import Listed, Page

Vector = npt.NDArray[np.float32]
"""A unit vector, shape (dimension,)."""


class Collection(StrEnum):
    """What is embedded. One collection holds every scope's rows of its kind."""

    STATEMENTS = "statements"
    ARCHIVE = "archive"
    """Statements that retention took out of STATEMENTS: asked only for what no longer holds."""
    PASSAGES = "passages"
    ENTITIES = "entities"
    VOICE = "voice"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class VectorRow:
    """An id with its vector and filter columns. `valid_at`/`invalid_at` are the hull of all spans.

    `subject`, `object`, `session`, `aspect` and `labels` hold ids or names of our own alphabet, "" if none.
    A session or label chosen by a tenant is stored as its derived id. `digest` is of the text that the
    vector is of (services/stores/vectors/rows.py), "" if unknown.
    """

    id: str
    vector: Vector
    valid_at: Instant = BEGINNING
    invalid_at: Instant = FOREVER
    created_at: int = 0
    aspect: str = ""
    subject: str = ""
    object: str = ""
    session: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """Every field that is set must match. `holds_at` keeps rows whose hull contains the instant."""

    holds_at: Instant | None = None
    since: Instant | None = None
    until: Instant | None = None
    aspects: Sequence[str] = ()
    subjects: Sequence[str] = ()
    sessions: Sequence[str] = ()
    ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A row found; `score` is the cosine, -1 to 1."""

    id: str
    score: float


class Consistency(StrEnum):
    """SESSION reads its own writes; BOUNDED may lag; STRONG waits, for checks of an erasure."""

    SESSION = "Session"
    BOUNDED = "Bounded"
    STRONG = "Strong"


class VectorStore(Protocol):
    """Unit vectors of many scopes, one dimension, cosine. All writes are idempotent."""

    @property
    def dimension(self) -> int: ...

    async def upsert(self, scope: Scope, collection: Collection, rows: Sequence[VectorRow]) -> None:
        """Writes rows in batches, replacing those of the same id. Raises ValueError on a wrong dimension."""
        ...

    async def search(
        self,
        scope: Scope,
        collection: Collection,
        vectors: Sequence[Vector],
        limit: int,
        where: VectorFilter = VectorFilter(),
        consistency: Consistency = Consistency.SESSION,
    ) -> Sequence[Sequence[Hit]]:
        """For each vector its nearest rows of this scope, best first, at most `limit`; equal scores by id."""
        ...

    async def fetch(
        self, scope: Scope, collection: Collection, ids: Sequence[str]
    ) -> Mapping[str, VectorRow]:
        """Rows by id; absent ones are left out."""
        ...

    async def delete(self, scope: Scope, collection: Collection, ids: Sequence[str]) -> None: ...

    async def count(
        self, scope: Scope, collection: Collection, consistency: Consistency = Consistency.SESSION
    ) -> int: ...

    async def scan(self, scope: Scope, collection: Collection, page: Page) -> Listed[str]:
        """The ids of a scope's rows in their order, for verification; a page may hold fewer than asked.

        Rows written or deleted meanwhile may be in it or not; every other one is met exactly once.
        """
        ...

    async def erase(self, scope: Scope) -> None:
        """Deletes every row of a scope in every collection."""
        ...

    async def flush(self) -> None:
        """Makes what was written fast to search."""
        ...

    async def close(self) -> None: ...
