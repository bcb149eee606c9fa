"""What two names of predicates say: words for the present fall away, what is over or not so stays apart."""

import pytest

from services.domain.predicates import default_vocabulary
from services.domain.synonyms import plain, unlike


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("still_works_for", "works_for"), ("is_now_employed_by", "is_employed_by"), ("the_owner", "owner"),
        ("目前就职于", "就职于"), ("现在住在", "住在"), ("仍然喜欢", "喜欢"),
        ("works_at", "works_at"), ("used_to_work_at", "used_to_work_at"), ("now", "now"), ("仍", "仍"),
        ("no_longer_works_at", "no_longer_works_at"), ("曾就职于", "曾就职于"), ("现居", "现居"),
    ],
)  # fmt: skip
def test_words_for_the_present_and_articles_fall_away(name: str, bare: str) -> None:
    assert plain(name) == bare


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("used_to_work_at", "works_at"), ("no_longer_likes", "likes"), ("plans_to_visit", "visits"),
        ("never_lived_in", "lives_in"), ("不喜爱", "喜爱"), ("曾供职于", "供职于"),
        ("runs_on_python_2", "runs_on_python_3"),
    ],
)  # fmt: skip
def test_what_is_over_or_not_so_is_unlike(one: str, other: str) -> None:
    assert unlike(one, other)
    assert unlike(other, one)


@pytest.mark.parametrize(
    ("one", "other"), [("toils_at", "works_at"), ("供职于", "就职于"), ("不爱", "不喜欢")]
)
def test_other_words_for_one_thing_may_be_asked_about(one: str, other: str) -> None:
    assert not unlike(one, other)


def test_no_name_that_ships_changes_its_meaning_without_words_for_the_present() -> None:
    shipped = default_vocabulary()
    moved = {name for name in shipped.names if shipped.canonical(plain(name)) != shipped.canonical(name)}
    assert moved <= {name for name in shipped.names if plain(name) not in shipped.names}
