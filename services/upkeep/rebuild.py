"""Rebuild: what is derived of a graph, made anew from its records and texts, part after part.

First every part of a verification, with repairs: spans, hulls and aliases follow from the records again. Then
the vectors of each collection are embedded anew, whatever they were. Then a verification that mends nothing.
"""

from dataclasses import dataclass

from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from services.upkeep.checks import MISSING, Seen
from services.upkeep.differences import Report
from services.upkeep.parts import Mends, Stores
from services.upkeep.repairs import expected
from services.upkeep.verify import Patience, Verifier

_COLLECTIONS = tuple(MISSING)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a page of a part came to. `after`: where the next page begins; "": the part is done."""

    report: Report
    vectors: int = 0
    after: str = ""


class Rebuild:
    """Rebuilds graphs of one set of stores. Every part is idempotent, and may run while others write."""

    def __init__(
        self, stores: Stores, vocabulary: Vocabulary, mends: Mends, patience: Patience | None = None
    ) -> None:
        self._stores = stores
        self._verifier = Verifier(stores, vocabulary, mends, patience)

    @property
    def parts(self) -> int:
        """How many parts there are: mending, vectors, checking."""
        return 2 * self._verifier.parts + len(_COLLECTIONS)

    def checks(self, part: int) -> bool:
        """Whether a part only looks, once all has been made anew."""
        return part >= self.parts - self._verifier.parts

    async def part(self, scope: Scope, part: int, page: Page) -> Rebuilt:
        """One part, of those with vectors one page. Raises StoreUnavailable, Conflict, EngineError."""
        checks = self._verifier.parts
        if part < checks:
            return Rebuilt(await self._verifier.verify_part(scope, part, repair=True))
        part -= checks
        if part < len(_COLLECTIONS):
            return await self._vectors(scope, _COLLECTIONS[part], page)
        return Rebuilt(await self._verifier.verify_part(scope, part - len(_COLLECTIONS)))

    async def _vectors(self, scope: Scope, collection: Collection, page: Page) -> Rebuilt:
        """Rows without an owner are left alone, missing ones made: both were mended in the parts before."""
        vectors = self._stores.vectors
        listed = await vectors.scan(scope, collection, page)
        current = await self._stores.revisions.current(scope)
        seen = Seen(scope, current, current, self._stores.now())
        rows = await expected(self._stores, seen, collection, listed.items)
        if rows:
            made = await self._stores.embedder.passages([row.text for row in rows])
            anew = [row.with_vector(vector) for row, vector in zip(rows, made, strict=True)]
            await vectors.upsert(scope, collection, anew)
        if not listed.after:
            await vectors.flush()
        return Rebuilt(Report(scope, (), len(listed.items)), len(rows), listed.after)
