"""The follower: takes follow-ups that are due, a few at once, until the process stops.

Any number of processes may do so. One that dies leaves a lease, which runs out, and another goes on.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from gateway.errors import GraphBeingErased
from gateway.store.follow_ups import LEASE_SECONDS, FollowUp, FollowUps
from services.domain.errors import GraphNotFound, InternalFailure
from services.runtime.status import error_of
from services.stores.errors import StoreError

log = structlog.get_logger(__name__)

_FIRST_WAIT_SECONDS = 5.0
_LONGEST_WAIT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Debounce:
    """When a follow-up is due: the graph is quiet so long, or changes have gone on so long."""

    quiet_seconds: float = 5.0
    longest_seconds: float = 60.0
    at_once: int = 2
    """Follow-ups of this process."""
    every_seconds: float = 1.0
    """How often it looks for them."""


class Follower:
    """Runs `follow` for each graph that is due. `follow` is idempotent."""

    def __init__(
        self, follow_ups: FollowUps, follow: Callable[[FollowUp], Awaitable[None]], debounce: Debounce
    ) -> None:
        self._follow_ups = follow_ups
        self._follow = follow
        self._debounce = debounce
        self._owner = uuid.uuid4().hex
        self._running: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Cuts short what runs, and gives it back: whoever is next goes on."""
        tasks = [*self._running, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def run_due(self) -> int:
        """Takes what is due and waits until it is made; answers how many there were."""
        taken = await self._take(self._debounce.at_once)
        await asyncio.gather(*(self._make(one) for one in taken))
        return len(taken)

    async def _run(self) -> None:
        while True:
            try:
                for one in await self._take(self._debounce.at_once - len(self._running)):
                    task = asyncio.get_running_loop().create_task(self._make(one))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
            except Exception:
                # A store that is down now is looked at again in a moment; nothing here can be lost.
                log.exception("follow-ups were not looked for")
            await asyncio.sleep(self._debounce.every_seconds)

    async def _take(self, places: int) -> list[FollowUp]:
        if places <= 0:
            return []
        quiet, longest = self._debounce.quiet_seconds, self._debounce.longest_seconds
        return list(await self._follow_ups.take(self._owner, quiet, longest, places))

    async def _make(self, one: FollowUp) -> None:
        """Never raises but when it is cut short."""
        renewing = asyncio.get_running_loop().create_task(self._renew(one))
        try:
            await self._made(one)
        except asyncio.CancelledError:
            await asyncio.shield(self._let_go(one))
            raise
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def _made(self, one: FollowUp) -> None:
        try:
            await self._follow(one)
            await self._follow_ups.done(one, self._owner)
        except Exception as exception:
            error = error_of(exception)
            if isinstance(error, GraphNotFound | GraphBeingErased):
                await self._dropped(one)
                return
            if isinstance(error, InternalFailure):
                log.exception("a follow-up failed")
            else:
                log.warning("a follow-up failed", reason=error.reason)
            doubled = _FIRST_WAIT_SECONDS * 2.0 ** min(one.attempts, 20)
            await self._let_go(one, min(doubled, _LONGEST_WAIT_SECONDS), 1)

    async def _dropped(self, one: FollowUp) -> None:
        try:
            await self._follow_ups.drop(one.scope)
        except StoreError:
            log.warning("a follow-up was not dropped")

    async def _let_go(self, one: FollowUp, wait_seconds: float = 0.0, tried: int = 0) -> None:
        try:
            await self._follow_ups.give_back(one, self._owner, wait_seconds, tried)
        except StoreError:
            log.warning("a follow-up was not given back; its lease runs out")

    async def _renew(self, one: FollowUp) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 4)
            try:
                await self._follow_ups.renew(one, self._owner)
            except StoreError:
                log.warning("lease of a follow-up not renewed")
