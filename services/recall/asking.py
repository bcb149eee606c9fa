"""Asking: everything that the legs of one recall need to know, and the searches that they share."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from services.domain.graph import Entity
from services.domain.scope import Scope
from services.recall.care import Care
from services.recall.facts_index import FactsIndex
from services.recall.fuse import Leg
from services.recall.plan import Plan
from services.recall.question import Question
from services.recall.readings import ReadAs
from services.recall.revisions import Known
from services.recall.standing import Time
from services.recall.texts_index import TextsIndex
from services.recall.topics import ANY, Topics
from services.stores.vectors.port import Collection, Consistency, Vector, VectorFilter, VectorStore


@dataclass(frozen=True, slots=True)
class Asking:
    """One question to one graph. `hints` are entities.

    `vector` is None where nothing can be embedded, an index where its store is down. `whole`: what is
    archived may be the answer, and is searched too.
    """

    scope: Scope
    question: Question
    plan: Plan
    time: Time
    known: Known
    reads: ReadAs
    hints: Sequence[Entity]
    terms: Sequence[str]
    vector: Vector | None
    facts_index: FactsIndex | None
    texts_index: TextsIndex | None
    care: Care
    whole: bool = False
    speakers: frozenset[str] = frozenset()
    """Keys of the speakers whom the question names, unless it names all."""
    topics: Topics = ANY


def says_something(query: str) -> bool:
    """False for an empty query and for one of punctuation and spaces alone; emoji say something."""
    return any(unicodedata.category(character)[0] in "LNS" for character in query)


async def dense_leg(
    vectors: VectorStore, asking: Asking, name: str, collection: Collection, limit: int, where: VectorFilter
) -> Leg:
    """The nearest rows of a collection. Raises StoreUnavailable."""
    assert asking.vector is not None, "there is something to search for"
    # The resolver that wrote it may be another process.
    just_written = asking.known.just_written(asking.question.asked.now)
    consistency = Consistency.STRONG if just_written else Consistency.SESSION
    [hits] = await vectors.search(asking.scope, collection, [asking.vector], limit, where, consistency)
    return Leg(name, [(hit.id, hit.score) for hit in hits])
