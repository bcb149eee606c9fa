"""Carrying: a whole graph out of the stores and into them, and what is derived of it made anew."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from palimpsest.internal.v1 import resolver_carrying_pb2 as pb
from services.domain.errors import Conflict, ValidationFailed, Violation
from services.domain.ids import Revision
from services.domain.instants import FOREVER
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.resolver.erasers import generation_in
from services.stores.memory.fences import FenceStore, check_generation
from services.stores.paging import Page
from services.upkeep.backup import point_at
from services.upkeep.differences import Difference, Done
from services.upkeep.export import Disturbed, Export
from services.upkeep.intake import Intake
from services.upkeep.items import Point, part_of
from services.upkeep.lines import items_in, line_of
from services.upkeep.parts import Mends, Stores
from services.upkeep.rebuild import Rebuild
from services.upkeep.verify import Patience, Verifier

PIECE = 512 * 1024
"""Bytes of lines that are sent together; a longer line is sent by itself."""
LOST = "text of the graph was deleted while it was read; export it again"


@dataclass(frozen=True, slots=True)
class Carried:
    """What carrying stands on."""

    stores: Stores
    vocabulary: Vocabulary
    mends: Mends
    erase_memory: Callable[[Scope], Awaitable[None]]
    fences: FenceStore
    patience: Patience = field(default_factory=Patience)


class Carrying:
    """A part of the resolver service, which sets `_carried`."""

    _carried: Carried

    async def export(self, scope: Scope, request: pb.ExportRequest) -> AsyncIterator[pb.ExportResponse]:
        """Everything of the graph as published when it begins. Nothing is held but ids and one piece.

        Raises Conflict when something was deleted meanwhile: what was there then can't be had any more.
        """
        stores = self._carried.stores
        point = await point_at(stores, scope, stores.now())
        embedder = stores.embedder
        yield pb.ExportResponse(
            begun=pb.ExportBegun(
                revision=point.revision,
                until=point.until,
                embedder=embedder.name,
                dimension=embedder.dimension,
            )
        )
        counts: Counter[str] = Counter()
        piece = bytearray()
        try:
            async for item in Export(stores, scope, point, request.with_vectors).items():
                counts[part_of(item)] += 1
                line = line_of(item)
                if piece and len(piece) + len(line) > PIECE:
                    yield pb.ExportResponse(lines=bytes(piece))
                    piece.clear()
                piece += line
        except Disturbed as error:
            raise Conflict(LOST) from error
        if piece:
            yield pb.ExportResponse(lines=bytes(piece))
        yield pb.ExportResponse(ended=pb.ExportEnded(counts=counts))

    async def import_(self, scope: Scope, request: pb.ImportRequest) -> pb.ImportResponse:
        """Writes items. Idempotent.

        Raises ValidationFailed, Conflict (the graph has another history), WriteConflict (another import has
        taken over since the caller read the generation).
        """
        stores = self._carried.stores
        if request.HasField("generation"):
            await check_generation(self._carried.fences, scope, request.generation)
        point = Point(Revision(request.revision), FOREVER)
        same = (request.embedder, request.dimension) == (stores.embedder.name, stores.embedder.dimension)
        intake = Intake(stores, scope, point, keep_vectors=same)
        try:
            for item in items_in(request.lines):
                await intake.take(item)
        except ValueError:
            # Not as its cause: that quotes the line, which is text of users.
            raise ValidationFailed(Violation("data", "has a line that is no item", "export.line")) from None
        await intake.flush()
        return pb.ImportResponse(items=intake.taken)

    async def verify_import(self, scope: Scope, request: pb.VerifyImportRequest) -> pb.VerifyImportResponse:
        """What differs from what the imported records derive. Raises Conflict when a revision is missing."""
        stores = self._carried.stores
        await stores.vectors.flush()
        if await stores.revisions.current(scope) != request.revision:
            raise ValidationFailed(Violation("data", "lacks revisions of its history", "export.history"))
        carried = self._carried
        verifier = Verifier(stores, carried.vocabulary, None, carried.patience)
        report = await verifier.verify(scope)
        return pb.VerifyImportResponse(differences=_by_kind(report.differences))

    async def discard_import(
        self, scope: Scope, request: pb.DiscardImportRequest
    ) -> pb.DiscardImportResponse:
        """Erases what was written of the graph; answers its generation from now on.

        Raises WriteConflict when the one that the caller read is over.
        """
        stores = self._carried.stores
        # First: who wrote before, and sleeps, does not write into what comes now.
        fence = await self._carried.fences.renew(scope, generation_in(request))
        await stores.vectors.erase(scope)
        await stores.graph.erase(scope)
        await self._carried.erase_memory(scope)
        return pb.DiscardImportResponse(generation=fence.generation)

    async def rebuild(self, scope: Scope, request: pb.RebuildRequest) -> pb.RebuildResponse:
        """Makes a page of one part anew. Idempotent. Raises Conflict, EngineError."""
        carried = self._carried
        rebuild = Rebuild(carried.stores, carried.vocabulary, carried.mends, carried.patience)
        if not 0 <= request.part < rebuild.parts:
            raise ValidationFailed(Violation("part", "there is no such part", "rebuild.part"))
        done = await rebuild.part(scope, request.part, Page(request.page_size or 200, request.after))
        found = done.report.differences
        return pb.RebuildResponse(
            parts=rebuild.parts,
            looked_at=done.report.looked_at,
            repaired=_by_kind(one for one in found if one.done is Done.REPAIRED),
            left=_by_kind(one for one in found if one.done is not Done.REPAIRED),
            vectors=done.vectors,
            after=done.after,
            checks=rebuild.checks(request.part),
            revision=await carried.stores.revisions.current(scope),
        )


def _by_kind(differences: Iterable[Difference]) -> Mapping[str, int]:
    return Counter(difference.kind.value for difference in differences)
