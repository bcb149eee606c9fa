"""Layout: what collections are called, what a row looks like in one, and what may be stored at all."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.vectors import filters
from services.stores.vectors.port import Collection, Hit, Vector, VectorRow

PREFIX = "palimpsest_"

FILTER_COLUMNS = ("aspect", "subject", "object", "session")
TIME_COLUMNS = ("valid_at", "invalid_at", "created_at")
STORED = ("id", "vector", *TIME_COLUMNS, *FILTER_COLUMNS)

MAX_LIMIT = 16_384
"""Results a search may ask for: the bound that Milvus's servers set."""

SCORE_DIGITS = 6
"""Scores are rounded to what 32-bit arithmetic carries, so that equal vectors score alike on every engine."""


def collection_name(collection: Collection, embedder: str, dimension: int) -> str:
    """The name for one embedder's vectors: another embedder or dimension is another collection."""
    slug = re.sub(r"[^a-z0-9]+", "_", embedder.lower()).strip("_")[:64]
    if slug != embedder:
        # What the slug lost must not make two embedders share a collection.
        slug = f"{slug}_{hashlib.sha256(embedder.encode()).hexdigest()[:8]}"
    return f"{PREFIX}{collection.value}_{slug}_{dimension}"


def is_ours(name: str) -> bool:
    """True of the collections of every embedder: an erasure must reach all of them."""
    return any(name.startswith(f"{PREFIX}{collection.value}_") for collection in Collection)


def checked_vector(vector: Vector, dimension: int) -> Vector:
    """The vector as 32-bit floats. Raises ValueError on a wrong shape, NaN, infinity or no length."""
    array = np.asarray(vector, dtype=np.float32)
    if array.shape != (dimension,):
        raise ValueError(f"a vector has shape {array.shape}, not ({dimension},)")
    if not np.isfinite(array).all():
        raise ValueError("a vector holds NaN or infinity")
    if not array.any():
        raise ValueError("a vector is zero: it has no direction")
    return array


def checked_rows(rows: Sequence[VectorRow], dimension: int) -> list[VectorRow]:
    """The rows to write, the last of each id. Raises ValueError if any may not be stored."""
    for row in rows:
        filters.checked(row.id)
        checked_vector(row.vector, dimension)
        for column in FILTER_COLUMNS:
            if value := getattr(row, column):
                filters.checked(value)
    return list({row.id: row for row in rows}.values())


def checked_limit(limit: int) -> int:
    """Raises ValueError outside 1 to 16,384."""
    if not 1 <= limit <= MAX_LIMIT:
        raise ValueError(f"a search asks for 1 to {MAX_LIMIT} results, not {limit}")
    return limit


def stored(scope: Scope, row: VectorRow) -> dict[str, Any]:
    """A row as Milvus takes it."""
    columns = {column: getattr(row, column) for column in (*TIME_COLUMNS, *FILTER_COLUMNS)}
    vector = np.asarray(row.vector, dtype=np.float32)
    return {"id": filters.key(scope, row.id), "scope": scope.key, "vector": vector, **columns}


def read(entity: Mapping[str, Any]) -> VectorRow:
    """A row as Milvus gives it back."""
    return VectorRow(
        id=filters.id_of(entity["id"]),
        vector=np.asarray(entity["vector"], dtype=np.float32),
        valid_at=Instant(entity["valid_at"]),
        invalid_at=Instant(entity["invalid_at"]),
        created_at=entity["created_at"],
        aspect=entity["aspect"],
        subject=entity["subject"],
        object=entity["object"],
        session=entity["session"],
    )


def ranked(scores: Sequence[tuple[str, float]]) -> list[Hit]:
    """Hits from ids and cosines, best first, equal scores by id."""
    hits = [Hit(id, round(min(1.0, max(-1.0, score)), SCORE_DIGITS)) for id, score in scores]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))
