"""Titles, labels, summaries and personas by rules: the same facts, the same words, in English and Chinese."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.memory import EpisodeKind
from services.domain.summaries import is_title, words_in
from services.llm import tasks
from services.llm.offline.telling import MAX_SENTENCES, portray, summarise
from tests.builders import on
from tests.examples import one_in

SETTING = tasks.Setting(EpisodeKind.CONVERSATION, on("2026-01-01"))
GRAZ = tasks.ToldFact("Maya lives in Graz", "Identity", on("2024-02-01"), None, "Maya", "lives_in", "Graz")
ACME = tasks.ToldFact("Maya works at Acme.", "Identity", None, on("2025-03-01"), "Maya", "works_at", "Acme")
FACTS = st.builds(
    tasks.ToldFact,
    st.text(min_size=1, max_size=30),
    st.sampled_from(["Identity", "Event", "Directive", ""]),
    st.none() | st.just(on("2024-01-01")),
    st.none() | st.just(on("2025-01-01")),
    st.sampled_from(["Maya", "玛雅", "", "Somebody with a very long name indeed"]),
    st.sampled_from(["lives_in", "works_at", "", "未知"]),
)


def test_english() -> None:
    told = summarise(tasks.Summarise([ACME, GRAZ], (), SETTING))
    assert [one.text for one in told.sentences] == [
        "Maya works at Acme (until 2025-03-01).",
        "Maya lives in Graz.",
    ]
    assert [list(one.facts) for one in told.sentences] == [[0], [1]]
    assert (told.title, list(told.labels)) == ("Maya on work and home", ["Work", "Home"])


def test_chinese() -> None:
    facts = [
        tasks.ToldFact("玛雅住在上海", "Identity", subject="玛雅", predicate="lives_in", object="上海"),
        tasks.ToldFact("玛雅在腾讯工作", "Identity", None, on("2025-03-01"), "玛雅", "works_at", "腾讯"),
    ]
    told = summarise(tasks.Summarise(facts, (), SETTING))
    assert [one.text for one in told.sentences] == ["玛雅住在上海。", "玛雅在腾讯工作（至 2025-03-01）。"]
    assert (told.title, list(told.labels)) == ("玛雅谈住处、工作", ["住处", "工作"])


def test_a_persona_tells_each_fact() -> None:
    told = portray(tasks.Portray([GRAZ, ACME], (), (), SETTING))
    assert [list(one.facts) for one in told.sentences] == [[0], [1]]


def test_whatever_is_told_has_a_title_labels_and_cited_sentences() -> None:
    @given(st.lists(FACTS, min_size=1, max_size=20))
    def law(facts: list[tasks.ToldFact]) -> None:
        task = tasks.Summarise(facts, (), SETTING)
        told = summarise(task)
        assert told == summarise(task)
        assert is_title(told.title)
        assert 1 <= len(told.labels) <= 3
        assert 1 <= len(told.sentences) <= MAX_SENTENCES
        cited = [position for one in told.sentences for position in one.facts]
        assert all(one.facts for one in told.sentences)
        assert len(set(cited)) == len(cited) <= len(facts)

    settings(max_examples=one_in(4))(law)()


@pytest.mark.parametrize(
    ("title", "words"), [("Maya's move to Graz", 4), ("C++ and C#", 3), ("玛雅搬家", 2), ("", 0)]
)
def test_words_are_counted(title: str, words: int) -> None:
    assert words_in(title) == words
