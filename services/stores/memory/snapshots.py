"""The port of snapshots: what a reader holds in memory of a graph, kept for the next one who starts cold.

A snapshot is a copy of texts and facts. So whoever removes text of a graph, from whichever store, lets its
snapshots go: where it goes from memory in the same transaction, where it goes from another store after that
and before the removal is told as done. What was read before then is not kept any more: its mark is over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from services.domain.instants import Instant
from services.domain.scope import Scope


class SnapshotKind(Enum):
    """Of what: the facts that are not archived, all facts, or texts."""

    FACTS = "facts"
    WHOLE = "whole"
    TEXTS = "texts"


@dataclass(frozen=True, slots=True)
class Mark:
    """The moment of a graph at which a reader began to read it: its generation, how often snapshots went."""

    generation: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Opaque bytes in parts, whose order counts, of a `layout` that the reader knows; what it read at a clock
    time, and so knows nothing of what came without being told since then.
    """

    layout: str
    taken_at: Instant
    parts: Sequence[bytes]


class SnapshotStore(Protocol):
    """At most one snapshot of each kind of a graph. Written by the recall service, dropped by who removes.

    It is no truth: what is lost of it is read from the stores again. Raises StoreUnavailable.
    """

    async def mark(self, scope: Scope) -> Mark:
        """Asked for before anything is read that is kept afterwards."""
        ...

    async def keep(self, scope: Scope, kind: SnapshotKind, mark: Mark, snapshot: Snapshot) -> bool:
        """Replaces the snapshot of this kind, in one transaction.

        False, with nothing written, when snapshots were dropped since the mark, when its generation is over,
        and while the graph is erased.
        """
        ...

    async def kept(self, scope: Scope, kind: SnapshotKind, layout: str) -> Snapshot | None:
        """The snapshot of this kind, if it is of this layout."""
        ...

    async def taken_at(self, scope: Scope, kind: SnapshotKind, layout: str) -> Instant | None:
        """When what `kept` would give was read; None where it would give nothing."""
        ...

    async def drop(self, scope: Scope) -> None:
        """Removes every snapshot of a graph, and voids every mark.

        For who changed rows that no revision tells.
        """
        ...
