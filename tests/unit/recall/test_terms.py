"""Terms and BM25: what words are, and that scores of one scope follow from its documents alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.recall.bm25 import K1, B, Bm25
from services.recall.terms import _terms, terms

WORDS = st.lists(st.sampled_from(["cat", "dog", "mysql", "graz", "tea"]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What does the cat drink?", ["cat", "drink"]),
        ("painting paintings painted", ["paint", "paint", "paint"]),
        ("Wen's project", ["wen", "project"]),
        ("C++ is not C#, nor c", ["c++", "c#", "c"]),
        ("ＰｏｓｔｇｒｅＳＱＬ 16", ["postgresql", "16"]),
        ("storage_binding", ["storag", "bind"]),
        ("!!! _ … 🎉", []),
        ("", []),
    ],
)
def test_words_are_folded_stemmed_and_sifted(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_chinese_gives_characters_and_pairs_without_particles() -> None:
    assert terms("主数据库是什么") == ["主", "主数", "数", "数据", "据", "据库", "库", "库是"]


def test_a_run_of_letters_is_cut() -> None:
    assert len(terms("x" * 10_000)[0]) <= 64


@given(st.text())
def test_any_text_has_terms_that_are_terms_again(text: str) -> None:
    assert all(term and not term.isspace() for term in terms(text))


def index_of(*documents: str) -> Bm25:
    index = Bm25()
    for number, text in enumerate(documents):
        index.add(f"d{number}", terms(text))
    return index


def best(index: Bm25, query: str, limit: int = 10) -> list[str]:
    return [id for id, _ in index.best(index.scores(terms(query)), limit)]


def test_rarer_words_weigh_more() -> None:
    index = index_of("the cat sat", "the cat ran", "the cat slept on the keyboard", "a dog")
    assert best(index, "cat keyboard")[0] == "d2"
    assert best(index, "keyboards") == ["d2"]


def test_chinese_is_found_by_a_part_of_a_sentence() -> None:
    index = index_of(
        "我们的主数据库用的是 MySQL 8.0。", "小猫叫米粒。", "我们已经把主数据库迁移到了 PostgreSQL 16。"
    )
    assert set(best(index, "主数据库是什么")[:2]) == {"d0", "d2"}
    assert "d1" not in best(index, "主数据库是什么")
    assert best(index, "猫的名字") == ["d1"]


def test_a_document_added_twice_counts_once() -> None:
    once, twice = index_of("cat tea"), index_of("cat tea")
    twice.add("d0", terms("dog"))
    assert best(twice, "dog") == []
    assert once.scores(["cat"]).tolist() == twice.scores(["cat"]).tolist()


def test_an_empty_index_and_an_empty_question_find_nothing() -> None:
    assert best(Bm25(), "cat") == []
    assert best(index_of("cat"), "???") == []


@given(st.lists(WORDS, min_size=1, max_size=12), WORDS)
def test_equal_scores_come_by_id_and_limits_only_cut(documents: list[list[str]], asked: list[str]) -> None:
    index = Bm25()
    for number, document in enumerate(documents):
        index.add(f"d{number}", document)
    scores = index.scores(asked)
    ranked = index.best(scores, len(documents))
    assert [(-score, id) for id, score in ranked] == sorted((-score, id) for id, score in ranked)
    assert all(index.best(scores, limit) == ranked[:limit] for limit in range(1, len(documents) + 1))
    assert np.count_nonzero(scores) == len(ranked)


@given(st.lists(WORDS, min_size=1, max_size=12), WORDS)
def test_scores_are_those_of_the_formula(documents: list[list[str]], asked: list[str]) -> None:
    index = Bm25()
    index.add_all((f"d{number}", document) for number, document in enumerate(documents))
    mean = sum(map(len, documents)) / len(documents)

    def score(document: list[str]) -> float:
        norm = K1 * (1 - B + B * len(document) / mean)
        counts = [(index.idf(term), document.count(term)) for term in set(asked)]
        return sum(idf * count * (K1 + 1) / (count + norm) for idf, count in counts)

    assert index.scores(asked).tolist() == pytest.approx([score(one) for one in documents], rel=1e-5)


@given(WORDS, st.lists(WORDS, max_size=6), WORDS)
def test_one_more_word_in_common_never_lowers_a_score(
    document: list[str], others: list[list[str]], asked: list[str]
) -> None:
    index = Bm25()
    for number, words in enumerate([document, *others]):
        index.add(f"d{number}", words)
    fewer, more = index.scores(asked[:1]), index.scores(asked)
    assert (more >= fewer - 1e-12).all()


@given(st.text(st.characters(max_codepoint=127)))
def test_what_needs_no_folding_is_cut_alike(text: str) -> None:
    """The quick way is the other one, on all that it is taken for."""
    assert terms(text) == list(_terms(text))


def test_of_many_equal_documents_the_first_by_id_are_the_best_whenever_they_came() -> None:
    ids = [f"{number:04}" for number in range(300)] + [
        f"of one beginning {number:04}" for number in range(300)
    ]
    index = Bm25()
    for part in (ids[1::2], ids[::2]):
        index.add_all([(id, ["cat"]) for id in part])
        here = sorted(index.ids)
        for limit in (1, 40, len(here) - 10, len(here)):
            assert [id for id, _ in index.best(index.scores(["cat"]), limit)] == here[:limit]
