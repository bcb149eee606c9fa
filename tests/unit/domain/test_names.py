"""Names and literals: the shared pairs of entities and their brothers, and laws of keys."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.graph import EntityType, LiteralKind
from services.domain.names import compatible, literal, name_key
from tests import yaml_files
from tests.unit.domain.given import CASES

STRING, NUMBER, BOOLEAN, TIME = LiteralKind
Named = tuple[str, EntityType]


def named(value: Any) -> Named:
    if isinstance(value, dict):
        return value["name"], EntityType(value["type"])
    return value, EntityType.UNKNOWN


def pairs(kind: str) -> list[tuple[Named, Named]]:
    return [(named(one), named(other)) for one, other in yaml_files.read(CASES / "entities.yaml")[kind]]


def same(one: Named, other: Named) -> bool:
    """What equal keys of compatible types decide, before anything asks for context."""
    return name_key(one[0]) == name_key(other[0]) and compatible(one[1], other[1])


APART = [
    ("C#", "C"), ("F#", "F"), (".NET", "NET"), ("A+", "A"), ("Node.js", "Nodejs"), ("Übung", "Ubung"),
    ("張偉", "张伟"), ("Python 3.1", "Python 3.11"), ("@types", "types"), ("R&D", "RD"), ("😀 team", "team"),
    ("東京 支社", "東京 本社"), ("1.0", "10"), ("Café", "Cafe"), ("А", "A"),
]  # fmt: skip
TOGETHER = [
    ("O’Brien", "O'Brien"), ("Jean–Luc", "jean-luc"), ("“Alpha”", '"alpha"'), ("ﬁle", "file"),
    ("Straße", "STRASSE"),
    ("ｉＰｈｏｎｅ　１５", "iphone 15"), ("Kiran\u00a0Rao", "Kiran Rao"),
    ("A\tB\n C", "a b c"),
    ("user_id", "User ID"),
    ("ガッツ", "ｶﾞｯﾂ"), ("AT&T", "at&t"), (" Meta ", "META"), ("И\u0306ван", "йван"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), pairs("stay_apart"), ids=repr)
def test_the_shared_pairs_stay_apart(one: Named, other: Named) -> None:
    assert not same(one, other)


@pytest.mark.parametrize(("one", "other"), pairs("merge"), ids=repr)
def test_the_shared_pairs_merge(one: Named, other: Named) -> None:
    assert same(one, other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_brothers_stay_apart(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@pytest.mark.parametrize(("one", "other"), TOGETHER)
def test_brothers_merge(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@given(st.text())
def test_a_key_is_its_own_key(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1))
def test_nothing_of_a_name_is_removed(name: str) -> None:
    assert name_key(name)
    assert name_key(name + "+") != name_key(name)


def test_types_fit_themselves_and_unknown_but_predicates_stand_alone() -> None:
    for one in EntityType:
        assert compatible(one, one)
        for other in EntityType:
            assert compatible(one, other) == compatible(other, one)
    assert compatible(EntityType.UNKNOWN, EntityType.PERSON)
    assert not compatible(EntityType.PERSON, EntityType.PLACE)
    assert not compatible(EntityType.PREDICATE, EntityType.UNKNOWN)


@pytest.mark.parametrize(
    ("kind", "text", "normal"),
    [
        (NUMBER, "42", "42"), (NUMBER, "42.0", "42"), (NUMBER, "4.2e1", "42"), (NUMBER, "+42", "42"),
        (NUMBER, "-0.0", "0"), (NUMBER, "1,000.50", "1000.5"), (NUMBER, "−3", "-3"), (NUMBER, "１２", "12"),
        (NUMBER, "0.00120", "0.0012"), (NUMBER, "1200", "1200"),
        (NUMBER, "1e40", "1E40"), (NUMBER, "10E39", "1E40"),
        (BOOLEAN, "Yes", "true"), (BOOLEAN, " FALSE ", "false"), (BOOLEAN, "是", "true"),
        (TIME, "2024-05-01", "2024-05-01"), (TIME, "2024-05-01T10:00:00+02:00", "2024-05-01T08:00:00Z"),
        (TIME, "2024-05-01T08:00", "2024-05-01T08:00:00Z"),
        (STRING, "  MySQL   8.0 ", "MySQL 8.0"), (STRING, "ＡＢＣ", "ABC"),
    ],
)  # fmt: skip
def test_one_text_for_one_value(kind: LiteralKind, text: str, normal: str) -> None:
    found = literal(kind, text)
    assert (found.kind, found.text) == (kind, normal)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(NUMBER, "forty"), (NUMBER, ""), (NUMBER, "NaN"), (NUMBER, "1,00"), (NUMBER, "Infinity"),
     (BOOLEAN, "maybe"), (TIME, "next week"), (TIME, "Q3 2025"), (TIME, "0001-01-01T00:00+14:00")],
)  # fmt: skip
def test_a_text_without_such_a_value_is_refused(kind: LiteralKind, text: str) -> None:
    with pytest.raises(ValueError):
        literal(kind, text)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_normal_number_is_normal_and_equal(value: Decimal) -> None:
    found = literal(NUMBER, str(value)).text
    assert literal(NUMBER, found).text == found
    assert Decimal(found) == value
