"""Turns: words of nearby turns count by their distance, each once; which speakers a question names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.ids import EpisodeId, PassageId
from services.domain.memory import Passage, Role
from services.recall.turns import SHARES, Turns
from tests.unit.recall.talks import talk

WORDS = st.lists(st.lists(st.sampled_from(["bowl", "blue", "kiln"]), max_size=4), min_size=1, max_size=12)


def test_a_word_counts_less_the_further_away_it_is_said() -> None:
    index, turns = talk(*[("A", f"filler{n}") for n in range(6)], ("A", "bowl"))
    scores = turns.windowed(index, ["bowl"])
    best = scores[6]
    assert list(scores / best) == pytest.approx([0, 0, *reversed(SHARES), 1])


def test_words_of_another_episode_do_not_count() -> None:
    index, turns = talk(("A", "bowl"), ("A", "nothing"), ("A", "nothing"), ("A", "nothing"), episodes=2)
    assert list(turns.windowed(index, ["bowl"]) > 0) == [True, True, False, False]


def test_a_word_that_is_said_all_around_counts_once() -> None:
    index, turns = talk(("A", "bowl"), ("B", "bowl"), ("A", "bowl"))
    assert turns.windowed(index, ["bowl"]) == pytest.approx(index.scores(["bowl"]))


def test_two_halves_side_by_side_beat_one_half() -> None:
    index, turns = talk(("A", "blue"), ("B", "bowl"), *[("A", f"filler{n}") for n in range(9)], ("A", "blue"))
    scores = turns.windowed(index, ["blue", "bowl"])
    assert scores[0] > scores[11] > 0


@given(WORDS, st.sampled_from([["bowl"], ["blue", "kiln"], ["absent"], []]), st.integers(1, 3))
def test_a_word_counts_as_where_it_is_nearest(
    texts: list[list[str]], asked: list[str], episodes: int
) -> None:
    index, turns = talk(*[("A", " ".join(text)) for text in texts], episodes=episodes)
    each = -(-len(texts) // episodes)

    def score(term: str, at: int) -> float:
        own, first = index.scores([term]), at // each * each
        beside = range(max(first, at - len(SHARES)), min(first + each, at + len(SHARES) + 1, len(texts)))
        return max(float(own[one]) * (1.0, *SHARES)[abs(one - at)] for one in beside)

    expected = [sum(score(term, at) for term in asked) for at in range(len(texts))]
    assert turns.windowed(index, asked).tolist() == pytest.approx(expected, rel=1e-5)


@given(WORDS, st.sampled_from([["bowl"], ["blue", "kiln"], ["absent"], []]))
def test_windows_take_nothing_from_a_turns_own_score(texts: list[list[str]], asked: list[str]) -> None:
    index, turns = talk(*[("A", " ".join(text)) for text in texts])
    windowed, own = turns.windowed(index, asked), index.scores(asked)
    assert all(windowed >= own - 1e-9)
    assert bool(windowed.any()) == bool(own.any())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did Mara buy?", {"mara jones"}),
        ("what did mara jones's sister say", {"mara jones"}),
        ("and BEN?", {"ben"}),
        ("小明说了什么", {"小明"}),
        ("Did Mara meet Ben?", {"mara jones", "ben"}),
        ("Mara, Ben, 小明", set()),  # all of them: nothing is told apart
        ("Benjamin?", set()),
        ("", set()),
    ],
)
def test_speakers_that_a_question_names(question: str, expected: set[str]) -> None:
    _, turns = talk(("Mara Jones", "one"), ("Ben", "two"), ("小明", "three"))
    assert turns.named_in(question) == expected


def test_an_assistant_without_a_name_is_a_speaker_all_the_same() -> None:
    turns = Turns()
    for at, (role, speaker) in enumerate([(Role.USER, "Emily"), (Role.ASSISTANT, "")]):
        turns.add(Passage(PassageId(str(at)), EpisodeId("e"), at, "Hello.", 0, 6, str(at), speaker, role))
    assert turns.assistants
    assert turns.named_in("What did you say?", turns.assistants) == turns.assistants
    assert list(turns.are_by(np.arange(2), turns.assistants)) == [False, True]
    assert whom(turns, "emily") == ["mine", "-"]  # what it says is nobody else's story


def test_a_first_name_of_two_people_names_neither() -> None:
    _, turns = talk(("Mara Jones", "one"), ("Mara Smith", "two"), ("Ben", "three"))
    assert turns.named_in("What did Mara buy?") == frozenset()
    assert turns.named_in("What did Mara buy?", ["mara smith"]) == {"mara smith"}


def test_who_says_a_turn_and_whether_it_asks() -> None:
    _, turns = talk(("Ana", 'How was "it?"'), ("Ben", "Good."), ("", "好吗？"))
    assert list(turns.ask(np.arange(3))) == [True, False, True]
    assert list(turns.are_by(np.arange(3), {"ben"})) == [False, True, False]


def whom(turns: Turns, *keys: str) -> list[str]:
    """For each turn: whether it tells of these speakers, of others, or of nobody."""
    mine, others = turns.about(keys)
    return ["mine" if one else "theirs" if other else "-" for one, other in zip(mine, others, strict=True)]


def test_a_turn_that_says_only_you_is_about_whom_it_answers() -> None:
    _, turns = talk(
        ("Ana", "I made a bowl."),
        ("Ben", "Your bowl is lovely!"),
        ("Ben", "You know, I made one too."),
        ("Ana", "你的碗真好看"),
        ("Ben", "我也喜欢"),
        ("", "nobody says this"),
    )
    assert whom(turns, "ana") == ["mine", "mine", "theirs", "theirs", "theirs", "-"]
    assert whom(turns, "ben") == ["theirs", "theirs", "mine", "mine", "mine", "-"]


def test_the_first_turn_of_a_talk_speaks_to_the_next() -> None:
    _, turns = talk(("Ana", "How was your trip?"), ("Ben", "I liked it."), ("Ana", "Your trip?"), episodes=1)
    assert whom(turns, "ben") == ["mine", "mine", "mine"]
    _, alone = talk(("Ana", "How was your trip?"))
    assert whom(alone, "ana") == ["mine"]
