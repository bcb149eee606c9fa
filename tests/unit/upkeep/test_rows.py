"""What differs between a stored row and the one that should be there."""

from dataclasses import replace

import numpy as np
import pytest

from services.domain.graph import EntityType, Span
from services.domain.ids import Revision
from services.domain.instants import BEGINNING, FOREVER, Instant
from services.stores.vectors.port import Collection, Vector
from services.stores.vectors.rows import NEVER
from services.upkeep.items import packed, unpacked
from services.upkeep.rows import of_entity, of_passage, of_statement, of_voice
from tests.builders import Maker, a_scope, on, text
from tests.contracts.memory_base import aspect, episode, passage

MAKE = Maker(a_scope())
VECTOR: Vector = np.array([1, 0], dtype=np.float32)
IVO, LIKES, TEA = MAKE.entity("Ivo"), MAKE.predicate("likes"), MAKE.entity("tea")
FACT = MAKE.statement(IVO, LIKES, TEA, revision=1)
FIRST = MAKE.span(FACT, on("2020-01-01"), on("2021-01-01"), revision=1)
LATER = MAKE.span(FACT, on("2022-01-01"), None, revision=3)


def test_a_row_as_it_should_be_differs_in_nothing() -> None:
    expected = of_statement(FACT, [FIRST], Revision(1))
    assert expected is not None
    assert (expected.collection, expected.text) == (Collection.STATEMENTS, FACT.fact)
    row = expected.with_vector(VECTOR)
    assert (row.valid_at, row.invalid_at, row.subject, row.object) == (
        on("2020-01-01"),
        on("2021-01-01"),
        IVO.id,
        TEA.id,
    )
    assert expected.differs(row) == ""


@pytest.mark.parametrize("column", ["aspect", "subject", "object", "session"])
def test_a_changed_column_is_named(column: str) -> None:
    expected = of_statement(FACT, [FIRST], Revision(1))
    assert expected is not None
    row = replace(expected.with_vector(VECTOR), **{column: "other"})  # type: ignore[arg-type] # a column of text
    assert expected.differs(row) == column


@pytest.mark.parametrize(
    ("valid_at", "invalid_at", "differs"),
    [
        (on("2020-01-01"), on("2021-01-01"), ""),
        (on("2020-01-01"), FOREVER, ""),
        (on("2020-01-01"), on("2022-01-01"), ""),
        (on("2019-01-01"), FOREVER, "valid_at"),
        (on("2020-01-02"), FOREVER, "valid_at"),
        (on("2020-01-01"), on("2020-12-31"), "invalid_at"),
        (BEGINNING, BEGINNING, "valid_at, invalid_at"),
    ],
)
def test_a_hull_may_lie_between_what_is_published_and_what_is_there(
    valid_at: Instant, invalid_at: Instant, differs: str
) -> None:
    expected = of_statement(FACT, [FIRST, LATER], Revision(2))
    assert expected is not None
    row = replace(expected.with_vector(VECTOR), valid_at=valid_at, invalid_at=invalid_at)
    assert expected.differs(row) == differs


def test_what_is_not_searched_for_has_no_row() -> None:
    assert of_statement(replace(FACT, fact=""), [FIRST], Revision(1)) is None
    assert of_entity(LIKES) is None
    assert of_entity(replace(IVO, name="")) is None
    assert of_entity(replace(IVO, type=EntityType.UNKNOWN)) is not None
    assert of_voice(replace(aspect("a"), text="")) is None
    assert of_passage(MAKE.scope, passage("p", "e", text="## Storage"), episode("e")) is None
    assert of_passage(MAKE.scope, passage("p", "e"), episode("e")) is not None


@pytest.mark.parametrize("spans", [[], [LATER]])
def test_what_holds_at_no_time_is_still_found_by_whom_it_may_contradict(spans: list[Span]) -> None:
    expected = of_statement(FACT, spans, Revision(2))
    assert expected is not None
    assert expected.least == NEVER


def test_a_literal_is_no_object_of_a_row() -> None:
    fact = MAKE.statement(IVO, LIKES, text("tea"))
    expected = of_statement(fact, [MAKE.span(fact)], Revision(1))
    assert expected is not None
    assert expected.row.object == ""


def test_a_packed_vector_is_the_same() -> None:
    vector = np.random.default_rng(7).normal(size=300).astype(np.float32)
    assert (unpacked(packed(vector)) == vector).all()
