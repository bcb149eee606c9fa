"""Predicates: one spelling, the vocabulary that ships, declarations on top."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.predicates import Cardinality, Declaration, Vocabulary, default_vocabulary, spelling

SHIPPED = default_vocabulary()


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("Works at", "works_at"), ("works-at", "works_at"), ("worksAt", "works_at"), ("WORKS_AT", "works_at"),
        ("  works   at! ", "works_at"), ("hasURL", "has_url"), ("HTTPServerOf", "http_server_of"),
        ("主数据库", "主数据库"), ("主 数据库", "主_数据库"), ("ｗｏｒｋｓ＿ａｔ", "works_at"),
        ("lives in (city)", "lives_in_city"),
        ("storage_binding", "storage_binding"), ("é_tat", "é_tat"), ("uses v2", "uses_v2"),
    ],
)  # fmt: skip
def test_spelling(name: str, spelt: str) -> None:
    assert spelling(name) == spelt


@pytest.mark.parametrize("name", ["", "  ", "--", "?!", "_"])
def test_a_predicate_needs_a_word(name: str) -> None:
    with pytest.raises(ValueError):
        spelling(name)


@given(st.text())
def test_a_spelling_is_its_own_spelling(name: str) -> None:
    try:
        spelt = spelling(name)
    except ValueError:
        return
    assert spelling(spelt) == spelt


@pytest.mark.parametrize(
    ("name", "canonical", "cardinality"),
    [
        ("employed_by", "works_at", Cardinality.SINGLE), ("Works For", "works_at", Cardinality.SINGLE),
        ("residesIn", "lives_in", Cardinality.SINGLE), ("住在", "lives_in", Cardinality.SINGLE),
        ("主数据库", "primary_database", Cardinality.SINGLE), ("spouse", "married_to", Cardinality.SINGLE),
        ("birthday", "born_on", Cardinality.SINGLE), ("assigned_to", "assigned_to", Cardinality.SINGLE),
        ("marital_status", "marital_status", Cardinality.SINGLE),
        ("reports to", "reports_to", Cardinality.SINGLE),
        ("favourite colour", "favourite_colour", Cardinality.SINGLE),
        ("currentStatus", "status", Cardinality.SINGLE), ("main_address", "main_address", Cardinality.SINGLE),
        ("current projects", "current_projects", Cardinality.MULTI),
        ("team lead", "led_by", Cardinality.SINGLE),
        ("uses", "uses", Cardinality.MULTI), ("likes", "likes", Cardinality.MULTI),
        ("knows", "knows", Cardinality.MULTI), ("deployed_on", "deployed_on", Cardinality.MULTI),
        ("storage_binding", "storage_binding", Cardinality.MULTI),
        ("never heard of", "never_heard_of", Cardinality.MULTI),
    ],
)  # fmt: skip
def test_what_ships(name: str, canonical: str, cardinality: Cardinality) -> None:
    assert SHIPPED.canonical(name) == canonical
    assert SHIPPED.cardinality(name) is cardinality


def test_inverses_go_both_ways() -> None:
    assert SHIPPED.inverse("manages") == "reports_to"
    assert SHIPPED.inverse("reports_to") == "manages"
    assert SHIPPED.inverse("spouse") == "married_to"
    assert SHIPPED.inverse("likes") is None
    for one, other in SHIPPED.inverses.items():
        assert SHIPPED.inverses[other] == one


def test_the_shipped_vocabulary_is_spelt_as_it_says() -> None:
    names = {*SHIPPED.aliases, *SHIPPED.aliases.values(), *SHIPPED.cardinalities, *SHIPPED.inverses}
    assert [name for name in names if spelling(name) != name] == []
    assert (
        SHIPPED.aliases.keys() & {*SHIPPED.aliases.values(), *SHIPPED.cardinalities, *SHIPPED.inverses}
        == set()
    )


def test_declarations_go_on_top() -> None:
    mine = SHIPPED.declaring(
        [
            Declaration("Favourite Colour", Cardinality.SINGLE, aliases=("best colour",)),
            Declaration("lives_in", Cardinality.MULTI),
            Declaration("favourite_food", Cardinality.MULTI),
            Declaration("mentors", inverse="mentored by"),
            Declaration("employer", Cardinality.MULTI, aliases=("works at",)),
        ]
    )
    assert mine.cardinality("best_colour") is Cardinality.SINGLE
    assert mine.canonical("bestColour") == "favourite_colour"
    assert mine.cardinality("resides_in") is Cardinality.MULTI
    assert mine.cardinality("favourite food") is Cardinality.MULTI
    assert mine.cardinality("favourite dish") is Cardinality.SINGLE
    assert (mine.inverse("mentors"), mine.inverse("mentored_by")) == ("mentored_by", "mentors")
    assert (
        mine.canonical("employed_by")
        == mine.canonical("works_at")
        == mine.canonical("employer")
        == "employer"
    )
    assert SHIPPED.cardinality("lives_in") is Cardinality.SINGLE, "the shipped one is as it was"


def test_aliases_in_a_circle_still_answer() -> None:
    found = Vocabulary().declaring([Declaration("a", aliases=("b",)), Declaration("b", aliases=("a",))])
    assert found.canonical("a") == found.canonical("b") == "b"


def test_the_vocabulary_is_read_once() -> None:
    assert default_vocabulary() is SHIPPED
