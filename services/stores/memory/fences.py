"""The port of fences, a part of the memory port: what keeps late writers out of a graph that is erased.

A graph has a generation, which each erasure raises twice: when it begins and when it ends. Between the two
the fence is up and nothing is written. Who read the graph before writes nothing after: he names the
generation that he read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from services.domain.scope import Scope


@dataclass(frozen=True, slots=True)
class Fence:
    """`generation` counts what erasures began and ended; `up`: one is under way, and nothing is written."""

    generation: int = 0
    up: bool = False


class FenceStore(Protocol):
    """One fence a graph. It outlives the graph, and tells nothing but that it was erased."""

    async def fence(self, scope: Scope) -> Fence: ...

    async def put_up(self, scope: Scope) -> Fence:
        """From now on nothing is written to the graph. Idempotent while it is up."""
        ...

    async def take_down(self, scope: Scope) -> Fence:
        """The graph may be written anew, by those who know it as it is now. Idempotent."""
        ...


class ErasableMemory(Protocol):
    """All that memory keeps of a graph, as one thing that is counted and erased."""

    async def rows(self, scope: Scope) -> Mapping[str, int]:
        """How many rows there are of a graph, by kind; kinds without any are left out. The fence is none."""
        ...

    async def erase(self, scope: Scope) -> None:
        """Removes every row of a scope but its fence, in one transaction. Idempotent."""
        ...

    async def compact(self) -> None:
        """On SQLite nothing that was deleted is left in the file. Elsewhere the database's own work."""
        ...
