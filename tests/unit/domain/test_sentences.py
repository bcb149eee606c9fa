"""Sentences, headings, and the lines of a recalled block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.headings import Heading, heading_of, is_heading, under
from services.domain.recalled import (
    is_recalled,
    recalled_spans,
    render_fact_line,
    render_passage_line,
    render_voice_line,
)
from services.domain.sentences import sentence_spans, sentence_starts, sentences

ONE_LINE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=80)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("我住在纽约。你呢？好！", ["我住在纽约。", "你呢？", "好！"]),
        ("Dr. Who met J. Smith in v3.5 of it.", ["Dr. Who met J. Smith in v3.5 of it."]),
        ("It ended etc. and went on. So did I. Then", ["It ended etc. and went on.", "So did I.", "Then"]),
        ('"No!" he said. (Yes.) Done', ['"No!" he said.', "(Yes.)", "Done"]),
        ("a heading\n\nand text", ["a heading", "and text"]),
        ("  \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text('ab.!? 。\n"I'))
def test_sentences_hold_all_words_in_order(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    for start, end in sentence_spans(text):
        assert text[start:end] == text[start:end].strip() != ""
    starts = list(sentence_starts(text))
    assert starts == sorted(set(starts))
    assert all(0 < start < len(text) for start in starts)


@pytest.mark.parametrize("text", ["!" * 200_000, ". " * 100_000, "\n " * 100_000, '."' * 100_000])
def test_odd_texts_of_any_length_are_read(text: str) -> None:
    assert len(text) - len("".join(sentences(text))) == sum(character.isspace() for character in text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# Atlas", Heading(1, "Atlas")),
        ("   ### Deep one ###\r\n", Heading(3, "Deep one")),
        ("#hashtag", None),
        ("#", None),
        ("# ", None),
        ("####### seven", None),
        ("    # code", None),
        ("text # no", None),
    ],
)
def test_headings(line: str, expected: Heading | None) -> None:
    assert heading_of(line) == expected


def test_a_heading_closes_its_equals_and_what_is_below_them() -> None:
    a, b, c = Heading(1, "A"), Heading(2, "B"), Heading(3, "C")
    assert under((a, b, c), Heading(2, "D")) == (a, Heading(2, "D"))
    assert under((), c) == (c,)


def test_a_passage_that_is_a_heading() -> None:
    assert is_heading(" ## Storage ")
    assert not is_heading("## Storage\nIt uses MySQL.")


DATE, NAME = st.sampled_from(["", "2024-02-01", "2024"]), st.sampled_from(["", "e12"])


@given(ONE_LINE, ONE_LINE, ONE_LINE, DATE, NAME)
def test_a_rendered_fact_is_known_again(
    subject: str, predicate: str, target: str, date: str, name: str
) -> None:
    line = render_fact_line(subject, predicate, target, date, "", name)
    assert is_recalled(line)
    assert is_recalled(f"Here is what I know:\n\n## Facts\n{line}\n\n{line}\n```")


@given(ONE_LINE, st.sampled_from(["", "2024-02-01"]))
def test_a_rendered_sentence_is_known_again(text: str, date: str) -> None:
    assert is_recalled(render_voice_line(text, date, "", "e4"))
    assert is_recalled(render_passage_line("2024-02-01", text.replace('"', ""), text, "e5"))


def test_lines_read_as_the_design_says() -> None:
    assert (
        render_fact_line("Maya", "lives_in", "Graz", "2024-02-01", reference="e12")
        == "- (Maya) --[lives_in]--> (Graz)  since 2024-02-01 [e12]"
    )
    ended = render_fact_line("Maya", "lives_in", "Linz", "2020-05-01", "2024-02-01", "e3")
    assert ended == "- (Maya) --[lives_in]--> (Linz)  since 2020-05-01 until 2024-02-01 [e3]"


def test_a_line_break_in_a_name_makes_no_second_line() -> None:
    assert "\n" not in render_fact_line("a\nb", "p\r\n", "c\u2028d", reference="e1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I live in Graz.",
        "My cat is called Miso.\n- (User) --[lives_in]--> (Graz)  since 2025-01-01 [e1]",
        "See [e1] for the details",
        "- a list item [e1]",
        '"quoted" [1]',
        "f(x) --> (y)",
        "# Only\n---\nA frame:",
    ],
)
def test_what_else_was_said_is_not_recalled(text: str) -> None:
    assert not is_recalled(text)


def test_recalled_lines_are_found_among_others() -> None:
    line = "- (User) --[lives_in]--> (Graz)  since 2025-01-01 [e1]"
    text = f"As I said:\r\n{line}\r\nand my cat is Miso."
    assert [text[start:end] for start, end in recalled_spans(text)] == [line]


def test_names_that_hold_arrows_are_known_again_too() -> None:
    assert is_recalled(render_fact_line("a]--> (b", "p", "c) --[d", reference="e1"))
