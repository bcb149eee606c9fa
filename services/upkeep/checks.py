"""Checks: a way to go through a graph, and what to look at in each thing that is met on it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.stores.vectors.port import Collection, VectorRow
from services.upkeep.differences import Difference, Kind
from services.upkeep.parts import Stores
from services.upkeep.rows import Expected


@dataclass(frozen=True, slots=True)
class Seen:
    """As what a look sees a graph: its published revision, the latest begun, and text older than `settled`.

    Text that is younger may be on its way: what is written after it is not missed yet.
    """

    scope: Scope
    known_at: Revision
    begun: Revision
    settled: Instant


class Check(Protocol):
    """One kind of unit: how all of them are met, and how some are looked at. Changes nothing."""

    def pages(self, scope: Scope) -> AsyncIterator[Sequence[str]]:
        """Every unit of a graph, in pages."""
        ...

    async def look(self, seen: Seen, units: Sequence[str]) -> list[Difference]:
        """What differs at these units; each difference names its unit. Those that are gone have none."""
        ...


@dataclass(frozen=True, slots=True)
class Looking:
    """What checks look with."""

    stores: Stores
    vocabulary: Vocabulary


MISSING: Mapping[Collection, Kind] = {
    Collection.STATEMENTS: Kind.STATEMENT_WITHOUT_VECTOR,
    Collection.ARCHIVE: Kind.ARCHIVED_WITHOUT_VECTOR,
    Collection.ENTITIES: Kind.ENTITY_WITHOUT_VECTOR,
    Collection.PASSAGES: Kind.PASSAGE_WITHOUT_VECTOR,
    Collection.VOICE: Kind.VOICE_WITHOUT_VECTOR,
}
"""What it is called that a row of a collection is not there. Labels have no owner in the stores yet."""
UNOWNED: Mapping[Collection, Kind] = {
    Collection.STATEMENTS: Kind.VECTOR_WITHOUT_STATEMENT,
    Collection.ARCHIVE: Kind.VECTOR_WITHOUT_ARCHIVED,
    Collection.ENTITIES: Kind.VECTOR_WITHOUT_ENTITY,
    Collection.PASSAGES: Kind.VECTOR_WITHOUT_PASSAGE,
    Collection.VOICE: Kind.VECTOR_WITHOUT_VOICE,
}
"""And that what it is of is not there."""


def vector_differences(
    scope: Scope, expected: Mapping[str, Expected], stored: Mapping[str, VectorRow]
) -> list[Difference]:
    """What is missing or differs of the rows that units (the keys) should have, all of one collection.

    `stored` has rows by id. `what` of a row that differs names its collection and columns.
    """
    found: list[Difference] = []
    for unit, wanted in expected.items():
        row = stored.get(wanted.row.id)
        if row is None:
            found.append(Difference(MISSING[wanted.collection], scope, wanted.row.id, unit=unit))
        elif differs := wanted.differs(row):
            what = f"{wanted.collection}: {differs}"
            found.append(Difference(Kind.VECTOR_DIFFERS, scope, wanted.row.id, what, unit))
    return found
