"""Whose: what somebody else did is no answer to a question about whom it names."""

from collections.abc import Iterable, Sequence

import pytest

from services.recall.terms import terms
from services.recall.whose import whose
from tests.unit.recall.talks import talk

TALK = [
    ("Ana", "I ran a charity race last week."),
    ("Ben", "Your race sounds great!"),
    ("Ben", "I baked sourdough bread at home."),
    ("Ana", "Nice, I like it."),
]
ALL = [str(at) for at in range(len(TALK))]


def asked(
    question: str,
    *speakers: str,
    near: Sequence[tuple[str, float]] = (),
    visible: Iterable[str] = ALL,
) -> float:
    index, turns = talk(*TALK)
    return whose(index, turns, speakers, terms(question), near, visible)


def test_whoever_did_it_is_surer_than_whoever_did_not() -> None:
    assert asked("charity race", "ana") > 0.5 > asked("charity race", "ben")
    assert asked("sourdough bread", "ben") > 0.5 > asked("sourdough bread", "ana")


def test_likeness_tells_them_apart_where_words_do_not() -> None:
    near = [("0", 0.9), ("2", 0.5), ("3", 0.4)]
    assert asked("a run for a good cause", "ana", near=near) > asked(
        "a run for a good cause", "ben", near=near
    )
    assert asked("", "ana", near=near) == pytest.approx(0.5 + (1.0 - 0.2) / 2)


def test_a_question_that_names_nobody_is_nobody_elses() -> None:
    assert asked("charity race") == 1.0


def test_what_is_not_visible_counts_for_nobody() -> None:
    assert asked("charity race", "ben", visible=["2"]) == 1.0
    assert asked("charity race", "ben", visible=["0"]) == 0.0
    assert asked("charity race", "ben", visible=[]) == 1.0


def test_it_is_between_0_and_1() -> None:
    near = [("0", 1.0), ("2", 0.1)]
    assert asked("charity race", "ana", near=near) == 1.0
    assert asked("charity race", "ben", near=near) == 0.0
