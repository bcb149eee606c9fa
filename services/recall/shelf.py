"""Shelf: the indexes of the graphs read lately, each of one scope alone, bounded in bytes."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

import structlog

from services.domain.scope import Scope
from services.recall.behind import Behind
from services.recall.revisions import Known
from services.stores.errors import StoreError

log = structlog.get_logger(__name__)

IDLE_SECONDS = 600.0
"""After which an index that nobody used is dropped, when another one is used."""

AGE_SECONDS = 3600.0
"""After which an index is read anew, behind the answers of the one that is there: upkeep mends rows of stores
without a revision that would tell. One that was kept is no younger than what it was read from."""


class Index(Protocol):
    """Something of one scope that can be brought forward to what is known now."""

    kept_seconds: float
    """For how long it was kept before it was loaded; 0 of what was read from the stores."""

    @property
    def bytes(self) -> int: ...

    async def bring_forward(self, known: Known) -> None: ...

    async def read_anew(self, known: Known, before: Self) -> None:
        """The same of one that holds nothing yet, from the stores alone; vectors as `before` has them."""
        ...


I = TypeVar("I", bound=Index)  # noqa: E741 - reads well where it is used


class _Place(Generic[I]):
    def __init__(self, index: I, made_at: float) -> None:
        self.index = index
        self.made_at = made_at
        self.known: Known | None = None
        """The latest that the index was brought forward to."""
        self.coming = asyncio.Lock()
        self.used_at = 0.0
        self.renewing: asyncio.Task[None] | None = None

    async def bring_forward(self, known: Known) -> I:
        """While no other one is put in its place."""
        async with self.coming:
            await self.index.bring_forward(known)
            if self.known is None or _order(known) > _order(self.known):
                self.known = known
            return self.index


class Shelf(Generic[I]):
    """Makes, keeps and evicts indexes. The least recently used goes first; the one in use always stays."""

    def __init__(
        self,
        make: Callable[[Scope], I],
        max_bytes: int,
        behind: Behind,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`seconds` is a clock that never goes back."""
        self._seconds = seconds
        self._make = make
        self._behind = behind
        self._max_bytes = max_bytes
        self._places: OrderedDict[Scope, _Place[I]] = OrderedDict()

    async def get(self, scope: Scope, known: Known) -> I:
        """The index of a scope, at its current revision or later. Raises StoreUnavailable."""
        place = self._places.get(scope)
        if place is None:
            place = self._places[scope] = _Place(self._make(scope), self._seconds())
        self._places.move_to_end(scope)
        place.used_at = self._seconds()
        self._drop_idle()
        index = await place.bring_forward(known)
        if self._seconds() - place.made_at + index.kept_seconds > AGE_SECONDS and place.renewing is None:
            place.renewing = self._behind.start(lambda: self._renew(scope, place, known))
        self._evict(scope)
        return index

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

    async def _renew(self, scope: Scope, place: _Place[I], known: Known) -> None:
        try:
            index = self._make(scope)
            await index.read_anew(known, place.index)
            # Most of what came meanwhile, while others are still answered.
            await index.bring_forward(place.known or known)
            async with place.coming:
                # Who has met the other one reads on from this: it may know no less.
                await index.bring_forward(place.known or known)
                place.index, place.made_at = index, self._seconds()
        except StoreError as error:
            # The next question tries again; what is held answers as before.
            log.info("index not read anew", error=str(error))
        finally:
            place.renewing = None

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


def _order(known: Known) -> tuple[int, int]:
    return known.current, known.texts
