"""Where a text names somebody, and the text without the name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.mentions import FILL, Mentions, named_after, tells_somebody

MAYA = Mentions(["maya", "maya kapoor"], ["maya angelou", "maya's law"])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("I met Maya.", True),
        ("MAYA  KAPOOR called", True),
        ("Ask Maya_Kapoor", True),
        ("Maya\u2019s dog", True),
        ("(maya)", True),
        ("Ｍａｙａ wrote", True),
        ("Amaya and Mayan", False),
        ("A poem of Maya Angelou", False),
        ("A poem of Maya Angelou, read by Maya", True),
        ("", False),
    ],
)
def test_a_name_is_found_as_whole_words_in_any_spelling(text: str, named: bool) -> None:
    assert MAYA.named_in(text) is named


def test_scripts_without_spaces_have_names_anywhere() -> None:
    assert Mentions(["王小明"]).named_in("我昨天见了王小明。")
    assert Mentions(["王小明"]).without("见了王小明。") == f"见了{FILL * 3}。"


def test_what_names_nobody_is_no_name() -> None:
    assert not Mentions(["i", "user", "x", ""])
    assert not Mentions(["i"]).named_in("I like tea")
    assert [key for key in ("al", "王", "you", "a") if tells_somebody(key)] == ["al", "王"]


def test_the_name_is_filled_and_everything_else_stays_in_its_place() -> None:
    text = "Maya Kapoor read Maya Angelou to MAYA."
    left = MAYA.without(text)
    assert left == f"{FILL * 4} {FILL * 6} read Maya Angelou to {FILL * 4}."
    assert len(left) == len(text)
    assert MAYA.without(left) == left


def test_what_is_spelt_so_that_it_can_not_be_cut_out_goes_whole() -> None:
    assert MAYA.without("Ｍａｙａ wrote") == f"{FILL * 4} {FILL * 5}"


@pytest.mark.parametrize(
    ("key", "after"),
    [
        ("maya's dog", True),
        ("the maya kapoor prize", True),
        ("maya angelou", False),
        ("maya", False),
        ("amaya's dog", False),
    ],
)
def test_what_is_named_after_somebody_can_not_be_told_without_the_name(key: str, after: bool) -> None:
    assert named_after(key, ["maya", "maya kapoor"]) is after


WORDS = st.lists(
    st.sampled_from(["maya", "Maya", "kapoor", "tea", "likes", "Amaya", "'s", ",", "(", "\n"]), max_size=12
)


@given(WORDS.map(" ".join))
def test_after_it_is_taken_out_nothing_is_named_and_no_place_moved(text: str) -> None:
    left = MAYA.without(text)
    assert not MAYA.named_in(left)
    assert len(left) == len(text)
    assert [one.isspace() for one in left] == [one.isspace() for one in text]
    if not MAYA.named_in(text):
        assert left == text


@given(st.text(max_size=40))
def test_any_text_can_be_looked_at(text: str) -> None:
    assert len(MAYA.without(text)) == len(text)
