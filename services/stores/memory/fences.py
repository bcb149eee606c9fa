"""The port of erasing, a part of the memory port: fences, and what goes for good.

A graph has a generation, which each erasure raises twice: when it begins and when it ends. Between the two
the fence is up and nothing is written. Who read the graph before writes nothing after: he names the
generation that he read. What others keep of a generation is void with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.domain.ids import PassageId, RecordId, StatementId, VoiceId
from services.domain.memory import DocumentVersion, Episode
from services.domain.scope import Scope
from services.stores.errors import WriteConflict
from services.stores.memory.snapshots import SnapshotStore


@dataclass(frozen=True, slots=True)
class Fence:
    """`generation` counts what erasures began and ended; `up`: one is under way, and nothing is written."""

    generation: int = 0
    up: bool = False


class FenceStore(Protocol):
    """One fence a graph. It outlives the graph, and tells nothing but that it was erased."""

    async def fence(self, scope: Scope) -> Fence: ...

    async def put_up(self, scope: Scope, generation: int | None = None) -> Fence:
        """From now on nothing is written to the graph. Idempotent while it is up.

        `generation` is what the caller read: raises WriteConflict when it is over, as for a process that
        slept while another did its work.
        """
        ...

    async def take_down(self, scope: Scope, generation: int | None = None) -> Fence:
        """The graph may be written anew, by those who know it as it is now. Idempotent.

        Raises WriteConflict as `put_up`.
        """
        ...

    async def renew(self, scope: Scope, generation: int | None = None) -> Fence:
        """Another generation of a graph that is not erased: what others read of it is void, and they write
        nothing. Not idempotent. Raises WriteConflict as `put_up`, and while the fence is up.
        """
        ...


async def check_generation(fences: FenceStore, scope: Scope, generation: int) -> None:
    """For who does what no fence could hold: raises WriteConflict when a generation that was read is over."""
    if (await fences.fence(scope)).generation != generation:
        raise WriteConflict("another generation of the graph")


@dataclass(frozen=True, slots=True)
class Purged:
    """What of memory goes for good, whatever revision it is of.

    `voice`: aspects with their records. `records`: claims of the voice alone. `ends`: of the voice, whose
    reasons go. `targets`: ids whose decisions go, on either side; `reasons`: those of which only the reasons
    go. `merges`: records of merges; `merge_reasons`: those of which only the reasons go. `statements`: whose
    places in the archive go.
    """

    voice: Sequence[VoiceId] = ()
    records: Sequence[RecordId] = ()
    ends: Sequence[RecordId] = ()
    targets: Sequence[str] = ()
    reasons: Sequence[str] = ()
    merges: Sequence[RecordId] = ()
    merge_reasons: Sequence[RecordId] = ()
    statements: Sequence[StatementId] = ()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Episodes and versions as their texts read from now on, and passages that are gone.

    Of episodes: text, headings, title, source, metadata; what is staged of them goes. Of versions: text and
    title.
    """

    episodes: Sequence[Episode] = ()
    versions: Sequence[DocumentVersion] = ()
    passages: Sequence[PassageId] = ()


class ErasableMemory(Protocol):
    """All that memory keeps of a graph, as one thing that is counted and erased, whole or in part."""

    fences: FenceStore
    snapshots: SnapshotStore

    async def rows(self, scope: Scope) -> Mapping[str, int]:
        """How many rows there are of a graph, by kind; kinds without any are left out.

        A snapshot counts once, whatever its size. The fence is none, nor is what counts how often they went.
        """
        ...

    async def erase(self, scope: Scope) -> None:
        """Removes every row of a scope but its fence, and snapshots last, in one transaction. Idempotent."""
        ...

    async def purge(self, scope: Scope, purged: Purged) -> None:
        """Removes what an entity leaves in memory, in one transaction. Idempotent. For the resolver."""
        ...

    async def rewrite(self, scope: Scope, rewritten: Rewritten) -> None:
        """Writes texts anew, in one transaction. Idempotent. For the preprocessor.

        Raises UnstorableText before writing anything.
        """
        ...

    async def compact(self) -> None:
        """On SQLite nothing that was deleted is left in the file. Elsewhere the database's own work."""
        ...
