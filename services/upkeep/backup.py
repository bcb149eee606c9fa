"""Backup and restore of graphs: one point over three stores, into an archive and back into empty stores.

CopyError
├── StoresNotEmpty      the stores hold something of the graph already
├── KeepsChanging       deletions came between, time after time
├── WritersActive       the graph is being written to
└── NotTheSame          what was copied is not what was there
"""

from collections.abc import AsyncIterator, Iterator

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from services.upkeep.archive import ArchiveDamaged, ArchiveIn, ArchiveOut, GraphEntry
from services.upkeep.export import Disturbed, Export
from services.upkeep.intake import EVERYTHING, Intake, Into
from services.upkeep.items import Item, Part, Point, from_json, part_of, to_json
from services.upkeep.parts import Stores

_TRIES = 5
"""Times a graph is read; each time a deletion came between, and the point moves past it."""


class CopyError(Exception):
    """A copy that could not be made, and was not. `str()` names graphs by what tenants call them."""


class StoresNotEmpty(CopyError):
    """The stores hold something of the graph already."""


class KeepsChanging(CopyError):
    """Deletions came between, time after time."""


class WritersActive(CopyError):
    """The graph is being written to."""


class NotTheSame(CopyError):
    """What was copied is not what was there."""


async def point_at(stores: Stores, scope: Scope, until: Instant, at_least: Revision = Revision(0)) -> Point:
    """A graph as it was at a clock time: the latest revision begun by then, of those published by now.

    `at_least` is a revision that is known to have been published by then: clocks of hosts differ.
    """
    revision = max(await stores.revisions.at(scope, until), at_least)
    begun = (await stores.revisions.clocks(scope, [revision])).get(revision, until)
    return Point(revision, max(until, begun))


async def back_up_graph(
    stores: Stores,
    scope: Scope,
    until: Instant,
    archive: ArchiveOut,
    *,
    at_least: Revision = Revision(0),
    with_vectors: bool = True,
    settings: str = "",
) -> GraphEntry:
    """Writes a graph as of `until` (see `point_at`) into an archive, while others may go on writing to it.

    Where something was deleted meanwhile the point moves to now: what is deleted is never kept.
    Raises KeepsChanging, StoreUnavailable.
    """
    folder = f"graphs/{scope.key}"
    for _ in range(_TRIES):
        point = await point_at(stores, scope, until, at_least)
        try:
            await _written(Export(stores, scope, point, with_vectors).items(), archive, folder)
        except Disturbed:
            archive.drop(f"{folder}/")
            until = stores.now()
            continue
        archive.close_files()
        return GraphEntry(
            scope.tenant, scope.graph, folder, point.revision, point.until, settings, scope.origin
        )
    raise KeepsChanging(f"{scope.tenant}/{scope.graph} had deletions whenever it was read")


async def _written(items: AsyncIterator[Item], archive: ArchiveOut, folder: str) -> None:
    async for item in items:
        archive.write(f"{folder}/{part_of(item)}.jsonl", to_json(item))


def scope_of(entry: GraphEntry) -> Scope:
    return Scope(TenantId(entry.tenant), GraphId(entry.graph), entry.origin)


async def restore_graph(stores: Stores, archive: ArchiveIn, entry: GraphEntry, keep_vectors: bool) -> int:
    """Writes a graph of an archive into stores that have nothing of it; answers how many items.

    Vectors of another embedder are made anew. Raises StoresNotEmpty, ArchiveDamaged, EngineError,
    StoreUnavailable.
    """
    scope = scope_of(entry)
    await check_empty(stores, scope)
    same = (archive.manifest.embedder, archive.manifest.dimension) == (
        stores.embedder.name,
        stores.embedder.dimension,
    )
    point = Point(Revision(entry.revision), Instant(entry.until))
    intake = Intake(stores, scope, point, keep_vectors=keep_vectors and same)
    for item in _read(archive, entry):
        await intake.take(item)
    await intake.flush()
    await stores.vectors.flush()
    return intake.taken


def _read(archive: ArchiveIn, entry: GraphEntry) -> Iterator[Item]:
    for part in Part:
        name = f"{entry.folder}/{part}.jsonl"
        for number, line in enumerate(archive.lines(name), 1):
            try:
                item = from_json(part, line)
            except ValueError:
                # Not as its cause: that quotes the line, which is text of users.
                raise ArchiveDamaged(f"line {number} of {name} is no item of this version") from None
            yield item


async def check_empty(stores: Stores, scope: Scope, into: frozenset[Into] = EVERYTHING) -> None:
    """Raises StoresNotEmpty naming the stores that hold something of the graph."""
    held: list[str] = []
    one = Page(1)
    if Into.GRAPH in into and (await stores.graph.scan(scope, one)).items:
        held.append("graph")
    if Into.MEMORY in into:
        begun = (await stores.revisions.scan(scope, one)).items
        if begun or (await stores.text.scan_episodes(scope, one)).items:
            held.append("memory")
    if Into.VECTORS in into:
        for collection in Collection:
            if (await stores.vectors.scan(scope, collection, one)).items:
                held.append("vectors")
                break
    if held:
        name = f"{scope.tenant}/{scope.graph}"
        raise StoresNotEmpty(f"the stores ({', '.join(held)}) hold something of {name} already")
