"""Kept: the snapshot of one index of one graph, written behind the answers and read by who starts cold."""

import asyncio
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import structlog

from services.domain.instants import Instant
from services.domain.scope import Scope
from services.recall.behind import Behind
from services.recall.states import Damaged, State, from_parts, to_parts
from services.stores.errors import StoreError
from services.stores.memory.snapshots import Mark, Snapshot, SnapshotKind, SnapshotStore

log = structlog.get_logger(__name__)

LAYOUT = 1
"""To be raised when states of indexes change, or how words are cut: tests/unit/recall/test_states.py."""
LEAST_ROWS = 1_000
"""A smaller graph is read from its stores in the time of a question or two."""
OLD_SECONDS = 600.0
"""From when on what is kept of a graph that changes is kept anew, though nobody asks."""
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Restored:
    """A state, and how many seconds ago it was read from the stores."""

    state: State
    seconds: float


@dataclass(frozen=True, slots=True)
class Began:
    """When reading what is to be kept began: what comes after it untold is not known."""

    mark: Mark
    at: Instant


class Kept:
    """What is kept of one kind of one graph. Nothing depends on it: without it the stores are read."""

    def __init__(
        self,
        store: SnapshotStore,
        behind: Behind,
        scope: Scope,
        kind: SnapshotKind,
        least_rows: int = LEAST_ROWS,
        seconds: Callable[[], float] = time.time,
    ) -> None:
        """`least_rows`: an index of fewer is not kept. `seconds` since 1970, as all processes have them."""
        self._store = store
        self._behind = behind
        self._scope = scope
        self._kind = kind
        self._least_rows = least_rows
        self._seconds = seconds

    async def begin(self) -> Began:
        """To be asked for before what is kept is read. Raises StoreUnavailable."""
        at = Instant(int(self._seconds() * _MICROS))
        return Began(await self._store.mark(self._scope), at)

    async def restored(self) -> Restored | None:
        """What is kept, if it is of this release's layout and can be read."""
        try:
            found = await self._store.kept(self._scope, self._kind, layout())
            if found is None:
                return None
            state = await asyncio.to_thread(from_parts, found.parts)
        except (StoreError, Damaged) as error:
            log.warning("snapshot not read", kind=self._kind.value, error=repr(error))
            return None
        return Restored(state, max(0.0, self._seconds() - found.taken_at / _MICROS))

    async def is_wanted(self) -> bool:
        """Whether nothing is kept, or what was read long ago. Raises StoreUnavailable."""
        taken_at = await self._store.taken_at(self._scope, self._kind, layout())
        return taken_at is None or self._seconds() - taken_at / _MICROS > OLD_SECONDS

    def keep(self, began: Began, rows: int, state: Callable[[], State]) -> "asyncio.Task[None] | None":
        """Keeps the state of an index of so many rows that was read since then, behind the answer.

        None where it has too few.
        """
        if rows < self._least_rows:
            return None
        held = state()
        return self._behind.start(lambda: self._keep(began, held))

    async def _keep(self, began: Began, state: State) -> None:
        parts = await asyncio.to_thread(lambda: list(to_parts(state)))
        try:
            snapshot = Snapshot(layout(), began.at, parts)
            await self._store.keep(self._scope, self._kind, began.mark, snapshot)
        except StoreError as error:
            # Whoever starts cold reads the stores, as without it.
            log.info("snapshot not kept", kind=self._kind.value, error=str(error))


class NothingKept:
    """A store of snapshots that keeps none."""

    async def mark(self, scope: Scope) -> Mark:
        return Mark(0, 0)

    async def keep(self, scope: Scope, kind: SnapshotKind, mark: Mark, snapshot: Snapshot) -> bool:
        return False

    async def kept(self, scope: Scope, kind: SnapshotKind, layout: str) -> Snapshot | None:
        return None

    async def taken_at(self, scope: Scope, kind: SnapshotKind, layout: str) -> Instant | None:
        return None

    async def drop(self, scope: Scope) -> None:
        return None


def layout() -> str:
    """Of what is kept, and of what cuts words: a word that is cut otherwise isn't found."""
    return f"{LAYOUT} {version('snowballstemmer')} {unicodedata.unidata_version}"
