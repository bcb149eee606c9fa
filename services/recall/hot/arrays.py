"""Arrays that grow: columns by place, the statements beside each node, vectors by place."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from services.recall.highest import nth_highest
from services.stores.vectors.port import Vector

Ints = npt.NDArray[np.int64]

_FIRST = 64


class Growing:
    """A column of integers that is appended to; twice as large each time that it is full."""

    def __init__(self) -> None:
        self._held = np.zeros(_FIRST, dtype=np.int64)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: int) -> int:
        return int(self._held[place])

    def __setitem__(self, place: int, value: int) -> None:
        self._held[place] = value

    @property
    def array(self) -> Ints:
        """A view of all values, to be read at once: a column that grew has another."""
        return self._held[: self._size]

    def append(self, value: int) -> None:
        self.extend([value])

    def extend(self, values: Sequence[int] | Ints) -> None:
        size = self._size + len(values)
        if size > len(self._held):
            room = np.zeros(max(size, 2 * len(self._held)), dtype=np.int64)
            room[: self._size] = self._held[: self._size]
            self._held = room
        self._held[self._size : size] = values
        self._size = size


class Neighbours:
    """By node: the places of the statements that name it as subject or object, one after the other."""

    def __init__(self) -> None:
        self._starts: Ints | None = None
        self._places: Ints = np.zeros(0, dtype=np.int64)

    def stale(self) -> None:
        """Statements came: made anew when next asked."""
        self._starts = None

    def of(self, nodes: Collection[int], subjects: Ints, objects: Ints, count: int) -> Ints:
        """What is beside some of `count` nodes."""
        if self._starts is None or len(self._starts) != count + 1:
            self._make(subjects, objects, count)
        assert self._starts is not None, "just made"
        parts = [self._places[self._starts[node] : self._starts[node + 1]] for node in nodes]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _make(self, subjects: Ints, objects: Ints, count: int) -> None:
        own = np.arange(len(subjects))
        named = objects >= 0
        nodes = np.concatenate([subjects, objects[named]])
        order = np.argsort(nodes, kind="stable")
        self._places = np.concatenate([own, own[named]])[order]
        self._starts = np.searchsorted(nodes[order], np.arange(count + 1))


class Rows(NamedTuple):
    """Some rows of a matrix as they are at one moment: unit vectors by place, and the places meant."""

    held: npt.NDArray[np.float32]
    places: Ints

    def nearest(self, vector: Vector, limit: int, ids: Sequence[str], digits: int) -> list[tuple[str, float]]:
        """The nearest of the places with their cosines, rounded; best first, equal ones by id.

        May run in another thread than what puts vectors.
        """
        if not len(self.places):
            return []
        length = float(np.linalg.norm(vector)) or 1.0
        asked = np.asarray(vector, dtype=np.float32) / np.float32(length)
        # Row by row, not as a product of BLAS: its threads wait for each other longer than one alone takes.
        scores, places = np.vecdot(self.held, asked)[self.places], self.places
        if len(places) > limit:
            least = nth_highest(scores, limit)
            # What is rounded to the same score as the last one is compared by id.
            near = scores >= least - 10.0**-digits
            places, scores = places[near], scores[near]
        # A product of a float of 24 bits and a power of ten is exact in one of 53: it rounds as `round` does.
        scale = 10.0**digits
        rounded = np.rint(np.clip(scores.astype(np.float64), -1.0, 1.0) * scale) / scale
        found = sorted(zip((-rounded).tolist(), [ids[place] for place in places.tolist()], strict=True))
        return [(id, -score) for score, id in found[:limit]]


class Matrix:
    """Unit vectors by place, shape (places, dimension); a place may have none.

    A vector that is there is never written over: who reads `Rows` of before sees what they had.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._held = np.zeros((0, dimension), dtype=np.float32)
        self._has = np.zeros(0, dtype=np.bool_)

    @property
    def bytes(self) -> int:
        return self._held.nbytes

    @property
    def has(self) -> npt.NDArray[np.bool_]:
        """Whether there is a vector at each place that there is room for."""
        return self._has

    def missing(self, wanted: npt.NDArray[np.bool_]) -> Ints:
        """The places that are wanted and have no vector."""
        self._grow(len(wanted))
        places: Ints = np.flatnonzero(wanted & ~self._has[: len(wanted)])
        return places

    def put(self, places: Sequence[int], vectors: Sequence[Vector]) -> None:
        """A vector for each place, none of length 0."""
        if not places:
            return
        self._grow(max(places) + 1)
        stacked = np.stack(vectors).astype(np.float32, copy=False)
        if self._held[places].any():
            self._held = self._held.copy()
        self._held[places] = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)
        self._has[places] = True

    def take(self, place: int, other: "Matrix", there: int) -> None:
        """The vector that another has at a place of its own."""
        self._grow(place + 1)
        self._held[place], self._has[place] = other._held[there], True

    def has_at(self, place: int) -> bool:
        """Whether a place has a vector."""
        return place < len(self._has) and bool(self._has[place])

    def drop(self, place: int) -> None:
        """Forgets the vector of a place, if it has one."""
        if place < len(self._has):
            self._has[place] = False

    def rows(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Those of the mask that have a vector, as they are now."""
        size = len(mask)
        self._grow(size)
        return Rows(self._held[:size], np.flatnonzero(mask & self._has[:size]))

    def _grow(self, size: int) -> None:
        if size <= len(self._has):
            return
        room = max(size, len(self._has) * 3 // 2)
        held = np.zeros((room, self._dimension), dtype=np.float32)
        held[: len(self._held)] = self._held
        has = np.zeros(room, dtype=np.bool_)
        has[: len(self._has)] = self._has
        self._held, self._has = held, has
