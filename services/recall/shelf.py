"""Shelf: the indexes of the graphs read lately, each of one scope alone, bounded in bytes."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from services.domain.ids import Revision
from services.domain.scope import Scope

IDLE_SECONDS = 600.0
"""After which an index that nobody used is dropped, when another one is used."""


class Index(Protocol):
    """Something of one scope that can be brought forward to a revision."""

    @property
    def bytes(self) -> int: ...

    async def bring_forward(self, revision: Revision) -> None: ...


I = TypeVar("I", bound=Index)  # noqa: E741 - reads well where it is used


class _Place(Generic[I]):
    def __init__(self, index: I) -> None:
        self.index = index
        self.coming = asyncio.Lock()
        self.used_at = 0.0


class Shelf(Generic[I]):
    """Makes, keeps and evicts indexes. The least recently used goes first; the one in use always stays."""

    def __init__(
        self, make: Callable[[Scope], I], max_bytes: int, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """`seconds` is a clock that never goes back."""
        self._seconds = seconds
        self._make = make
        self._max_bytes = max_bytes
        self._places: OrderedDict[Scope, _Place[I]] = OrderedDict()

    async def get(self, scope: Scope, revision: Revision) -> I:
        """The index of a scope, at `revision` or later. Raises StoreUnavailable."""
        place = self._places.get(scope)
        if place is None:
            place = self._places[scope] = _Place(self._make(scope))
        self._places.move_to_end(scope)
        place.used_at = self._seconds()
        self._drop_idle()
        async with place.coming:
            await place.index.bring_forward(revision)
        self._evict(scope)
        return place.index

    def held(self, scope: Scope) -> I | None:
        """The index of a scope as it is, if there is one."""
        place = self._places.get(scope)
        return place.index if place else None

    def drop(self, scope: Scope) -> None:
        """Forgets the index of a scope; the next use builds it anew."""
        self._places.pop(scope, None)

    @property
    def bytes(self) -> int:
        return sum(place.index.bytes for place in self._places.values())

    @property
    def scopes(self) -> list[Scope]:
        """Least recently used first."""
        return list(self._places)

    def _drop_idle(self) -> None:
        """A graph that was erased is not asked for again: its words must not stay for that."""
        until = self._seconds() - IDLE_SECONDS
        for scope, place in list(self._places.items()):
            if place.used_at > until:
                return
            del self._places[scope]

    def _evict(self, used: Scope) -> None:
        held = self.bytes
        for scope in list(self._places):
            if held <= self._max_bytes:
                return
            if scope != used:
                held -= self._places.pop(scope).index.bytes
