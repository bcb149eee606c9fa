"""Layout: what collections are called, what a row looks like in one, and what may be stored at all."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.vectors import filters
from services.stores.vectors.port import Collection, Hit, Vector, VectorRow

FILTER_COLUMNS = ("aspect", "subject", "object", "session")
TIME_COLUMNS = ("valid_at", "invalid_at", "created_at")
TEXT_COLUMNS = (*FILTER_COLUMNS, "digest")
STORED = ("id", "vector", *TIME_COLUMNS, *TEXT_COLUMNS)

VERSION = 2
"""Of the columns. Collections of another version are like those of another embedder: replaced, not read."""

_MAX_EF = 32_768

MAX_LIMIT = 16_384
"""Results a search may ask for: the bound that Milvus's servers set."""

SCORE_DIGITS = 6
"""Scores are rounded to what 32-bit arithmetic carries, so that equal vectors score alike on every engine."""


_PREFIX = re.compile(r"[a-z][a-z0-9]{0,31}")


@dataclass(frozen=True, slots=True)
class Index:
    """A vector index of a real server. `m`, `ef_construction` and `ef` count for HNSW alone."""

    kind: Literal["AUTOINDEX", "HNSW"] = "AUTOINDEX"
    m: int = 16
    """Neighbours of a node: more is exacter, larger and slower to build."""
    ef_construction: int = 200
    """Candidates while building."""
    ef: int = 128
    """Candidates while searching, at least as many as results are asked for."""

    def build(self) -> dict[str, int]:
        return {"M": self.m, "efConstruction": self.ef_construction} if self.kind == "HNSW" else {}

    def search(self, limit: int) -> dict[str, int]:
        return {"ef": min(_MAX_EF, max(self.ef, limit))} if self.kind == "HNSW" else {}


def fingerprint(embedder: str, dimension: int) -> str:
    """Names an embedder's vectors: another embedder, dimension or version of the columns has another."""
    slug = re.sub(r"[^a-z0-9]+", "_", embedder.lower()).strip("_")[:64]
    if slug != embedder:
        # What the slug lost must not make two embedders share a collection.
        slug = f"{slug}_{hashlib.sha256(embedder.encode()).hexdigest()[:8]}"
    return f"{slug}_{dimension}_v{VERSION}"


def checked_prefix(prefix: str) -> str:
    """Raises ValueError unless names that begin with it can't be taken for those of another prefix."""
    if _PREFIX.fullmatch(prefix) is None:
        raise ValueError("a prefix is of 1 to 32 lower-case letters and digits, and begins with a letter")
    return prefix


def collection_name(prefix: str, collection: Collection, fingerprint: str) -> str:
    return f"{prefix}_{collection.value}_{fingerprint}"


def live_alias(prefix: str) -> str:
    """The alias for the statements' collection of the embedder in use; the other collections go with it."""
    return f"{prefix}_live"


def kind(prefix: str, name: str) -> Collection | None:
    """Which kind of rows a collection of any embedder holds; None for one that isn't ours."""
    return next((one for one in Collection if name.startswith(collection_name(prefix, one, ""))), None)


def owner(prefix: str, name: str) -> str:
    """The fingerprint in a collection's name; "" for one that isn't ours."""
    found = kind(prefix, name)
    return "" if found is None else name.removeprefix(collection_name(prefix, found, ""))


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
        for column in TEXT_COLUMNS:
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
    columns = {column: getattr(row, column) for column in (*TIME_COLUMNS, *TEXT_COLUMNS)}
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
        digest=entity["digest"],
    )


def ranked(scores: Sequence[tuple[str, float]]) -> list[Hit]:
    """Hits from ids and cosines, best first, equal scores by id."""
    hits = [Hit(id, round(min(1.0, max(-1.0, score)), SCORE_DIGITS)) for id, score in scores]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))
