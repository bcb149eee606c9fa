"""Taking in: a graph out of a spool into the stores, seen by nobody until it is whole."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import structlog

from gateway.errors import Conflict, ValidationFailed, Violation
from gateway.ingest.erasing_entity import generation_of
from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.ingest.spool import Spool
from gateway.services import Services
from gateway.store.imports import LEASE_SECONDS, Found, Imports, Making
from palimpsest.internal.v1 import resolver_carrying_pb2 as pb
from services.domain.scope import Scope
from services.upkeep.lines import GraphLine

log = structlog.get_logger(__name__)

TAKEN_OVER = "another import has taken over"


@dataclass(frozen=True, slots=True)
class Written:
    """What an import writes: the revision that was exported, into this generation of the graph."""

    revision: int
    generation: int


class Taking:
    """Writes imports. Idempotent by what they are asked with."""

    def __init__(
        self, services: Services, imports: Imports, seconds: float, reached: Reached = unwatched
    ) -> None:
        """`seconds` is how long a call that writes or checks may take; texts may have to be embedded."""
        self._services = services
        self._imports = imports
        self._seconds = seconds
        self._reached = reached

    async def __call__(self, making: Making, spool: Spool, graph: GraphLine, revision: int) -> None:
        """The graph, whole and visible; or nothing of it.

        Raises GraphExists, Overloaded (another import is at it), ValidationFailed (it does not hang
        together), Conflict (the place was lost), EngineError, StoreUnavailable: of the last the next import
        of the same graph finds what was written, and goes on or removes it.
        """
        scope = making.scope
        # Before the place is taken: whoever takes it after us makes another, and what we still send is void.
        generation = await generation_of(self._services, scope, self._seconds)
        owner, found = await self._imports.begin(making)
        if found is Found.DONE:
            return
        try:
            async with self._held(scope, owner):
                if found is Found.LEFT:
                    generation = await self._discard(scope, generation)
                await self._write(scope, owner, spool, graph, Written(revision, generation))
                await self._verify(scope, revision)
        except ValidationFailed:
            if await self._imports.renew(scope, owner):
                await self._discard(scope, generation)
                await self._imports.give_up(scope, owner)
            raise
        if not await self._imports.finish(scope, owner):
            raise Conflict(TAKEN_OVER)

    async def _write(
        self, scope: Scope, owner: str, spool: Spool, graph: GraphLine, written: Written
    ) -> None:
        batches = spool.lines()
        while (lines := await asyncio.to_thread(next, batches, None)) is not None:
            # Nothing is written without the place: the tenant may be erased meanwhile.
            if not await self._imports.renew(scope, owner):
                raise Conflict(TAKEN_OVER)
            self._reached(Milestone.IMPORTING)
            request = pb.ImportRequest(
                revision=written.revision,
                lines=lines,
                embedder=graph.embedder,
                dimension=graph.dimension,
                generation=written.generation,
            )
            await self._services.call(scope, self._services.resolver.Import, request, self._seconds)

    async def _verify(self, scope: Scope, revision: int) -> None:
        request = pb.VerifyImportRequest(revision=revision)
        verify = self._services.resolver.VerifyImport
        told = (await self._services.call(scope, verify, request, self._seconds)).differences
        if told:
            kinds = ", ".join(sorted(told))
            raise ValidationFailed(
                Violation("data", f"does not follow from its own records: {kinds}", "export.whole")
            )

    async def _discard(self, scope: Scope, generation: int) -> int:
        """What was written is gone, and who wrote it writes nothing more. Answers the generation after it."""
        discard = self._services.resolver.DiscardImport
        asked = pb.DiscardImportRequest(generation=generation)
        return (await self._services.call(scope, discard, asked, self._seconds)).generation

    @asynccontextmanager
    async def _held(self, scope: Scope, owner: str) -> AsyncIterator[None]:
        """Keeps the place while it lasts; what is written without it is cut short. Raises Conflict."""
        work = asyncio.current_task()
        assert work is not None, "an import runs in a task"
        lost = False
        loop = asyncio.get_running_loop()

        async def renew() -> None:
            nonlocal lost
            held_until = loop.time() + LEASE_SECONDS
            while True:
                await asyncio.sleep(LEASE_SECONDS / 4)
                asked_at = loop.time()
                try:
                    lost = not await self._imports.renew(scope, owner)
                    held_until = asked_at + LEASE_SECONDS
                except Exception:
                    # A store that is down now is asked again in time, while the lease lasts.
                    log.exception("lease of an import not renewed")
                    lost = loop.time() >= held_until - LEASE_SECONDS / 4
                if lost:
                    work.cancel()
                    return

        renewing = loop.create_task(renew())
        try:
            yield
        except asyncio.CancelledError:
            if lost:
                raise Conflict(TAKEN_OVER) from None
            raise
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)


def imported(scope: Scope, graph: GraphLine) -> Scope:
    """The scope of an imported graph: its new ids follow from where it was begun."""
    return replace(scope, origin="" if graph.origin == scope.key else graph.origin)
