"""Stores of snapshots that fail in their own ways, each over a real one."""

import asyncio

from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.errors import StoreUnavailable
from services.stores.memory.snapshots import Mark, Snapshot, SnapshotKind, SnapshotStore


class PassedOn:
    """A store of snapshots that passes everything on."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store

    async def mark(self, scope: Scope) -> Mark:
        return await self._store.mark(scope)

    async def keep(self, scope: Scope, kind: SnapshotKind, mark: Mark, snapshot: Snapshot) -> bool:
        return await self._store.keep(scope, kind, mark, snapshot)

    async def kept(self, scope: Scope, kind: SnapshotKind, layout: str) -> Snapshot | None:
        return await self._store.kept(scope, kind, layout)

    async def taken_at(self, scope: Scope, kind: SnapshotKind, layout: str) -> Instant | None:
        return await self._store.taken_at(scope, kind, layout)

    async def drop(self, scope: Scope) -> None:
        await self._store.drop(scope)


class FullSnapshots(PassedOn):
    """One that has no room."""

    async def keep(self, scope: Scope, kind: SnapshotKind, mark: Mark, snapshot: Snapshot) -> bool:
        raise StoreUnavailable("memory")


class UnreadableSnapshots(PassedOn):
    """One that gives nothing back."""

    async def kept(self, scope: Scope, kind: SnapshotKind, layout: str) -> Snapshot | None:
        raise StoreUnavailable("memory")


class SlowSnapshots(PassedOn):
    """One that keeps only when it is told to."""

    def __init__(self, store: SnapshotStore) -> None:
        super().__init__(store)
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def keep(self, scope: Scope, kind: SnapshotKind, mark: Mark, snapshot: Snapshot) -> bool:
        self.reached.set()
        await self.go.wait()
        return await super().keep(scope, kind, mark, snapshot)
