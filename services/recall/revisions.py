"""Revisions: which published revision a read sees, and waiting for one that a writer was told."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from palimpsest.internal.v1 import values_pb2 as pb
from services.domain.errors import RevisionNotReady
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.memory.following import UNCHANGED, TextChanges
from services.stores.memory.port import Head, RevisionLog

WAIT_SECONDS = 2.0
POLL_SECONDS = 0.02
SETTLED_MICROS = 60_000_000
"""All processes see a write in a fraction of a second; the rest is for a resolver that took its time."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a read knows: the graph as of revision `at`, text saved until `saved_until` (None: all of it).

    `current` is the latest published revision, which indexes may have reached. `begun_at` is when the
    revision that the caller insists on was begun, if it does.
    """

    at: Revision
    current: Revision
    saved_until: Instant | None = None
    begun_at: Instant | None = None
    texts: TextChanges = UNCHANGED
    """Which texts there are now."""
    archives: bool = True
    """Whether anything was ever archived."""
    labels: bool = True
    """Whether any session has a label now."""

    def just_written(self, now: Instant) -> bool:
        """Whether what the caller insists on is so young that other processes may not see its vectors yet."""
        return self.begun_at is not None and now - self.begun_at < SETTLED_MICROS


class Revisions:
    """Resolves `known_at` and `min_revision` of requests."""

    def __init__(
        self,
        log: RevisionLog,
        wait_seconds: float = WAIT_SECONDS,
        on_erased: Callable[[Scope], None] = lambda _: None,
    ) -> None:
        """`on_erased` is told when a graph, or something of it, was erased: what is kept of it is void."""
        self._on_erased = on_erased
        self._generations: dict[Scope, int] = {}
        self._log = log
        self._wait_seconds = wait_seconds

    async def known(self, scope: Scope, known_at: pb.KnownAt, min_revision: int = 0) -> Known:
        """Waits for `min_revision` and for the revision of `known_at`, then reads as of the latter.

        Raises RevisionNotReady when one is not published in time, StoreUnavailable.
        """
        wanted = Revision(max(min_revision, known_at.revision))
        head = await self._published(scope, wanted, known_at.wait_seconds or self._wait_seconds)
        begun_at, until = await self._begun_at(scope, Revision(min_revision)), None
        at = head.current
        match known_at.WhichOneof("known_at"):
            case "revision" if known_at.revision < head.current:
                at = Revision(max(0, known_at.revision))
                until = await self._begun_at(scope, at)
            case "clock":
                until = Instant(known_at.clock)
                at = await self._log.at(scope, until)
        return Known(at, head.current, until, begun_at, head.texts, head.archives, head.labels)

    async def _begun_at(self, scope: Scope, revision: Revision) -> Instant | None:
        if revision <= 0:
            return None
        return (await self._log.clocks(scope, [revision])).get(revision)

    async def _published(self, scope: Scope, wanted: Revision, wait_seconds: float) -> Head:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_seconds
        head = await self._log.head(scope)
        # Of a graph that is asked for the first time nothing is kept.
        if self._generations.get(scope, 0) != head.generation:
            self._generations[scope] = head.generation
            self._on_erased(scope)
        while head.current < wanted:
            if loop.time() >= until:
                raise RevisionNotReady(wanted, head.current)
            await asyncio.sleep(POLL_SECONDS)
            head = await self._log.head(scope)
        return head
