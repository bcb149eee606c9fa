"""Likeness: which names may be one entity's, which their form tells apart, and by which keys they meet."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.domain.graph import EntityType
from services.domain.likeness import Likeness, Name, apart, fits, fuller, likeness, named_in, spelled_out
from services.domain.names import name_key
from services.domain.near_keys import is_near_key, keys_to_ask, near_keys
from services.domain.predicates import spelling
from services.domain.scripts import plain, simplified
from tests import yaml_files
from tests.machine import ROOT

CASES: dict[str, Any] = yaml_files.read(ROOT / "tests/cases/entities.yaml")
UNKNOWN, PERSON, PLACE = EntityType.UNKNOWN, EntityType.PERSON, EntityType.PLACE

ALIKE = [
    ("NYC", "New York City", Likeness.ACRONYM),
    ("DoD", "Department of Defense", Likeness.ACRONYM),
    ("FBI", "Federal Bureau of Investigation", Likeness.ACRONYM),
    ("I.B.M.", "International Business Machines", Likeness.ACRONYM),
    ("IBM", "International Business Machines Corp.", Likeness.ACRONYM),
    ("UK", "United Kingdom", Likeness.ACRONYM),
    ("北大", "北京大学", Likeness.ACRONYM),
    ("北大", "北京大學", Likeness.ACRONYM),
    ("中科院", "中国科学院", Likeness.ACRONYM),
    ("МГУ", "Московский Государственный Университет", Likeness.ACRONYM),
    ("Maya K.", "Maya Kapoor", Likeness.INITIALS),
    ("M. Kapoor", "Maya Kapoor", Likeness.INITIALS),
    ("J. R. R. Tolkien", "John Ronald Reuel Tolkien", Likeness.INITIALS),
    ("Иван П.", "Иван Петров", Likeness.INITIALS),
    ("Dr. Maya K.", "Maya Kapoor", Likeness.INITIALS),
    ("张伟", "張偉", Likeness.SPELLING),
    ("陈丽", "陳麗", Likeness.SPELLING),
    ("José García", "Jose Garcia", Likeness.SPELLING),
    ("Kapoor, Maya", "Maya Kapoor", Likeness.SPELLING),
    ("Łukasz", "Lukasz", Likeness.SPELLING),
    ("O'Brien", "OBrien", Likeness.SPELLING),
    ("Node.js", "NodeJS", Likeness.SPELLING),
    ("Acme", "Acme Inc.", Likeness.PART),
    ("北京", "北京市", Likeness.PART),
    ("Kubernetes", "Kubernets", Likeness.SLIP),
]
APART = [
    *[tuple(each) for each in CASES["stay_apart"] if isinstance(each[0], str)],
    ("C++", "C"),
    ("C#", "C"),
    ("GPT-4", "GPT-4o"),
    ("Python 2", "Python 3"),
    ("iPhone", "iPhone 15"),
    ("v1.1", "v1.10"),
    ("R&D", "RD"),
    ("iPhone手机壳", "iPhone充电器"),
    ("北京大学", "南京大学"),
    ("北京", "北京大学"),
    ("中国银行", "中国农业银行"),
    ("张伟", "张娜"),
    ("Maya Kapoor", "Maya Kumar"),
    ("Maya Kapoor", "Ravi Kapoor"),
    ("New York", "New York Times"),
    ("Jansen", "Janssen"),
    ("Iran", "Iraq"),
    ("ガス", "カス"),
    ("Acme Bank", "Acme Group"),
]
NEAR_OR_NOT = [("Munich", "München"), ("Postgres", "PostgreSQL"), ("IBM", "国际商业机器公司")]


@pytest.mark.parametrize(("one", "other", "kind"), ALIKE)
def test_names_that_may_be_one(one: str, other: str, kind: Likeness) -> None:
    left, right = Name(one, UNKNOWN), Name(other, UNKNOWN)
    assert likeness(left, right) is likeness(right, left) is kind
    assert not apart(left, right)


@pytest.mark.parametrize(("one", "other"), CASES["likely_same_needs_context"])
def test_the_likely_cases_are_alike_and_meet_by_a_key(one: str, other: str) -> None:
    assert likeness(Name(one, UNKNOWN), Name(other, UNKNOWN)) is not None
    assert meet(one, other)
    assert meet(other, one)


@pytest.mark.parametrize(("one", "other"), APART)
def test_names_that_are_told_apart_by_their_form(one: str, other: str) -> None:
    left, right = Name(one, UNKNOWN), Name(other, UNKNOWN)
    assert apart(left, right)
    assert apart(right, left)
    assert likeness(left, right) is None


@pytest.mark.parametrize(("one", "other"), NEAR_OR_NOT)
def test_names_of_which_the_form_says_nothing(one: str, other: str) -> None:
    left, right = Name(one, UNKNOWN), Name(other, UNKNOWN)
    assert likeness(left, right) is None
    assert not apart(left, right)


@pytest.mark.parametrize("pair", [each for each in CASES["stay_apart"] if isinstance(each[0], dict)])
def test_types_tell_equal_names_apart(pair: list[dict[str, str]]) -> None:
    one, other = (Name(each["name"], EntityType(each["type"])) for each in pair)
    assert apart(one, other)
    assert likeness(one, other) is None


def test_part_of_a_name_means_a_person_alone() -> None:
    assert likeness(Name("Maya", PERSON), Name("Maya Kapoor", UNKNOWN)) is Likeness.PART
    assert apart(Name("Kapoor", PERSON), Name("Maya Kapoor", PERSON))
    assert apart(Name("Maya", UNKNOWN), Name("Maya Kapoor", UNKNOWN))
    assert apart(Name("Bob", PERSON), Name("Robert", PERSON))
    assert not apart(Name("Zhang Wei", PERSON), Name("张伟", PERSON))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ana joined International Business Machines (IBM).", True),
        ("Ana joined IBM (International Business Machines) in May.", True),
        ('Ana joined International Business Machines ("IBM").', True),
        ("Ana joined International Business Machines (aka IBM; Armonk).", True),
        ("Ana joined International Business Machines（IBM）。", True),
        ("Ana joined International Business Machines. IBM pays well.", False),
        ("Ana joined International Business Machines (IBMX).", False),
        ("Ana joined IBM (Armonk, International Business Machines).", False),
    ],
)
def test_brackets_spell_a_name_out(text: str, said: bool) -> None:
    one, other = Name("IBM", UNKNOWN), Name("International Business Machines", UNKNOWN)
    assert spelled_out(text, one, other) is spelled_out(text, other, one) is said


def test_brackets_say_nothing_of_names_that_are_not_alike() -> None:
    assert not spelled_out("Ana (Graz) called.", Name("Ana", UNKNOWN), Name("Graz", UNKNOWN))
    assert spelled_out("北京大学（简称：北大）很大", Name("北大", UNKNOWN), Name("北京大学", UNKNOWN))


def test_a_name_is_found_whole_in_a_text() -> None:
    assert named_in("I saw maya  KAPOOR there", Name("Maya Kapoor", PERSON))
    assert not named_in("I saw Mayas", Name("Maya", PERSON))
    assert named_in("我见了张伟。", Name("张伟", PERSON))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (one, other)
        for one, other, kind in ALIKE
        if kind is not Likeness.SLIP and one not in {"UK", "Node.js"}
    ],
)
def test_alike_names_meet_by_a_key_whichever_comes_first(one: str, other: str) -> None:
    assert meet(one, other)
    assert meet(other, one)


@given(st.text(max_size=30), st.sampled_from(EntityType))
def test_a_near_key_is_no_names_key(text: str, type: EntityType) -> None:
    assert all(map(is_near_key, near_keys(text, type)))
    assert not is_near_key(name_key(text))
    assert len(near_keys(text, type)) <= 8
    assert len(keys_to_ask(text, type)) <= 24
    with suppress(ValueError):  # no word in it
        assert not is_near_key(spelling(text))


FEW = st.text(alphabet="0aAbé .'-+北大公司", max_size=12)
"""Names of few letters: they often share some."""


@given(FEW | st.text(max_size=20), FEW | st.text(max_size=20), st.sampled_from(EntityType))
@example("0", "0A", UNKNOWN)
@example("Ada", "Adam", UNKNOWN)
def test_likeness_has_no_order(one: str, other: str, type: EntityType) -> None:
    left, right = Name(one, type), Name(other, type)
    assert likeness(left, right) is likeness(right, left)
    assert apart(left, right) is apart(right, left)
    assert fuller(left, right) != fuller(right, left) or left.key == right.key


def test_two_short_names_may_be_of_one_full_name() -> None:
    short, other = Name("Maya K.", PERSON), Name("M. Kapoor", PERSON)
    assert likeness(short, other) is None
    assert fits(short, other)
    assert fits(short, Name("Maya Kapoor", PERSON))
    assert not fits(Name("Maya Kapoor", PERSON), Name("Maya Kumar", PERSON))
    assert not fits(short, Name("M. Kapoor", PLACE))


def test_predicates_have_no_near_keys() -> None:
    assert near_keys("works at New York", EntityType.PREDICATE) == frozenset()


def test_plain_letters() -> None:
    assert [
        plain(text) for text in ("José", "Müller", "Łódź", "Ødegård", "Straße", "ガ", "김철수", "張偉")
    ] == [
        "jose",
        "muller",
        "lodz",
        "odegard",
        "strasse",
        "ガ",
        "김철수",
        "张伟",
    ]
    assert len(simplified()) > 4_000, "the tagger's table is installed"
    assert [plain(text) for text in ("創業動規參階", "趙錢孫李周吳鄭王")] == [
        "创业动规参阶",
        "赵钱孙李周吴郑王",
    ]


def meet(known: str, new: str, type: EntityType = UNKNOWN) -> bool:
    """Whether a new name finds a known one by its own keys or its near ones."""
    return bool(keys_to_ask(new, type) & ({name_key(known)} | near_keys(known, type)))
