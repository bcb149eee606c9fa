"""The archive's catalogue: which statements lie outside what is searched every day. The resolver writes it.

It tells a place, not a belief: statements, records and spans stay in the graph as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.domain.ids import Revision, StatementId
from services.domain.scope import Scope
from services.stores.paging import Listed, Page


@dataclass(frozen=True, slots=True)
class Moved:
    """The latest revisions that archived a statement and that brought it back; 0 where none did."""

    statement: StatementId
    archived_at: Revision = Revision(0)
    restored_at: Revision = Revision(0)

    @property
    def archived(self) -> bool:
        return self.archived_at > self.restored_at

    def as_of(self, revision: Revision) -> "Moved":
        """Without what later revisions did. What an earlier one did before that is not known any more."""
        return Moved(
            self.statement,
            self.archived_at if self.archived_at <= revision else Revision(0),
            self.restored_at if self.restored_at <= revision else Revision(0),
        )


class ArchiveStore(Protocol):
    """The catalogue of many scopes. Every method raises StoreUnavailable when the store can't be reached."""

    async def apply(self, scope: Scope, moved: Sequence[Moved]) -> None:
        """Keeps the later revision of what is there and what is given. Idempotent, in any order.

        What was never archived needs no bringing back: it gets no row.
        """
        ...

    async def among(self, scope: Scope, statements: Sequence[StatementId]) -> frozenset[StatementId]:
        """Those of these statements that are archived: one indexed look-up."""
        ...

    async def moves(self, scope: Scope, statements: Sequence[StatementId]) -> Sequence[Moved]:
        """What is known of these statements, by id; one that was never archived is absent."""
        ...

    async def archived(self, scope: Scope, page: Page) -> Listed[StatementId]:
        """Those that are archived, by id."""
        ...

    async def scan(self, scope: Scope, page: Page) -> Listed[Moved]:
        """Everything that was ever archived, by id; for export."""
        ...

    async def latest(self, scope: Scope) -> Revision:
        """The latest revision that archived or brought back anything; 0 if none did."""
        ...

    async def count(self, scope: Scope) -> int:
        """How many are archived."""
        ...
