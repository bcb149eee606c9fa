"""Shelf: the indexes of the graphs read lately, each of one scope alone, bounded in bytes."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

import structlog

from services.domain.scope import Scope
from services.metering import READING_SECONDS
from services.recall.behind import Behind
from services.recall.hot.kept import Kept
from services.recall.revisions import Known
from services.recall.states import State
from services.stores.errors import StoreError

log = structlog.get_logger(__name__)

IDLE_SECONDS = 600.0
"""After which an index that nobody used is dropped, when another one is used."""

AGE_SECONDS = 3600.0
"""After which an index is read anew, behind the answers of the one that is there: upkeep mends rows of stores
without a revision that would tell. One that was kept is no younger than what it was read from."""

PAUSE_SECONDS = 60.0
"""After which that is tried again where it failed."""


class Index(Protocol):
    """Something of one scope that is loaded or restored once, then brought forward to what is known."""

    @property
    def bytes(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def state(self) -> State: ...

    async def load(self, known: Known) -> None:
        """From the stores."""
        ...

    async def restore(self, state: State) -> None:
        """From the state of another one."""
        ...

    async def take_over(self, before: Self) -> None:
        """What another one has that is slow to read."""
        ...

    async def bring_forward(self, known: Known) -> bool:
        """False when it must be loaded anew."""
        ...

    async def settled(self) -> None:
        """Waits for what it reads behind the answers."""
        ...


I = TypeVar("I", bound=Index)  # noqa: E741 - reads well where it is used


class _Place(Generic[I]):
    def __init__(self) -> None:
        self.index: I | None = None
        self.read_at = 0.0
        """When the index was read from the stores, by the shelf's clock."""
        self.known: Known | None = None
        """The latest that the index was brought forward to."""
        self.coming = asyncio.Lock()
        self.used_at = 0.0
        self.renewing: asyncio.Task[None] | None = None
        self.tried_at = -math.inf
        """When it was last tried to read it anew."""


class Shelf(Generic[I]):
    """Makes, keeps and evicts indexes. The least recently used goes first; the one in use always stays.

    An index is held once it is whole. One that can't be brought forward is followed by another, in one go:
    whoever reads meanwhile sees all of the old or all of the new.
    """

    def __init__(
        self,
        make: Callable[[Scope], I],
        kept: Callable[[Scope], Kept],
        max_bytes: int,
        behind: Behind,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`kept`: what is kept of a scope. `seconds` is a clock that never goes back."""
        self._seconds = seconds
        self._make = make
        self._kept = kept
        self._behind = behind
        self._max_bytes = max_bytes
        self._places: OrderedDict[Scope, _Place[I]] = OrderedDict()

    async def get(self, scope: Scope, known: Known) -> I:
        """The index of a scope, at its current revision or later. Raises StoreUnavailable."""
        place = self._places.setdefault(scope, _Place())
        self._places.move_to_end(scope)
        place.used_at = self._seconds()
        self._drop_idle()
        async with place.coming:
            index = await self._brought(scope, place, known)
        if place.renewing is None and self._is_old(place):
            place.renewing = self._behind.start(lambda: self._renew(scope, place))
        self._evict(scope)
        return index

    def held(self, scope: Scope) -> I | None:
        """The index of a scope as it is, if there is one."""
        place = self._places.get(scope)
        return place.index if place else None

    async def keep(self, scope: Scope, known: Known) -> bool:
        """Keeps a scope for who starts cold, unless that was done a short while ago; nothing is held after.

        False when it is too large to be kept. Raises StoreUnavailable.
        """
        if not await self._kept(scope).is_wanted():
            return True
        index, keeping = await self._read(scope, known)
        if keeping is not None:
            await keeping
        return self._has_room(index)

    def drop(self, scope: Scope) -> None:
        """Forgets the index of a scope; the next use builds it anew."""
        self._places.pop(scope, None)

    @property
    def bytes(self) -> int:
        return sum(place.index.bytes for place in self._places.values() if place.index)

    @property
    def scopes(self) -> list[Scope]:
        """Least recently used first."""
        return list(self._places)

    def _is_old(self, place: _Place[I]) -> bool:
        now = self._seconds()
        return now - place.read_at > AGE_SECONDS and now - place.tried_at > PAUSE_SECONDS

    async def _brought(self, scope: Scope, place: _Place[I], known: Known) -> I:
        index, read_at = place.index, place.read_at
        if index is None:
            index, read_at = await self._first(scope, known)
        if not await index.bring_forward(known):
            # No younger than before: vectors are those of the other one.
            index = await self._anew(scope, known, index)
        place.index, place.read_at = index, read_at
        place.known = max(place.known or known, known, key=_order)
        return index

    async def _first(self, scope: Scope, known: Known) -> tuple[I, float]:
        """From what is kept, else from the stores; and when it was read from these."""
        began = self._seconds()
        found = await self._kept(scope).restored()
        if found is None:
            return (await self._read(scope, known))[0], began
        index = self._make(scope)
        await index.restore(found.state)
        READING_SECONDS.record(self._seconds() - began, {"source": "snapshot"})
        return index, began - found.seconds

    async def _anew(self, scope: Scope, known: Known, before: I) -> I:
        """From the stores, whatever is kept."""
        while True:
            index, _ = await self._read(scope, known)
            await index.take_over(before)
            if await index.bring_forward(known):
                return index

    async def _read(self, scope: Scope, known: Known) -> tuple[I, asyncio.Task[None] | None]:
        """From the stores; and what keeps that, if it is to be kept."""
        kept, began = self._kept(scope), self._seconds()
        reading = await kept.begin()
        index = self._make(scope)
        await index.load(known)
        READING_SECONDS.record(self._seconds() - began, {"source": "stores"})
        keeping = None
        if self._has_room(index):
            keeping = kept.keep(reading, index.rows, lambda: index.state)
        return index, keeping

    def _has_room(self, index: I) -> bool:
        return index.bytes <= self._max_bytes

    async def _renew(self, scope: Scope, place: _Place[I]) -> None:
        """All of it is read, vectors too, while the one that is there answers as it did before."""
        try:
            assert place.index is not None, "it is old"
            await place.index.settled()
            if self._places.get(scope) is place:
                await self._replace(scope, place)
        except StoreError as error:
            log.info("index not read anew", error=str(error))
        finally:
            place.renewing, place.tried_at = None, self._seconds()

    async def _replace(self, scope: Scope, place: _Place[I]) -> None:
        assert place.known is not None, "it was brought forward"
        began = self._seconds()
        index, _ = await self._read(scope, place.known)
        # Most of what comes meanwhile is met while others are still answered.
        if not await index.bring_forward(place.known):
            return
        await index.settled()
        if not await index.bring_forward(place.known):
            return
        async with place.coming:
            # Who has met the other one reads on from this: it may know no less.
            if await index.bring_forward(place.known):
                place.index, place.read_at = index, began

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
                gone = self._places.pop(scope).index
                held -= gone.bytes if gone else 0


def _order(known: Known) -> tuple[int, int]:
    return known.current, known.texts
