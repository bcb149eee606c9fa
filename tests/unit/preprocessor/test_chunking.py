"""The laws of chunking, on texts of every kind."""

import random

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.instants import Instant
from services.domain.memory import Role
from services.llm import tokens
from services.preprocessor.chunking import MAXIMUM, MINIMUM, THRESHOLD, Span, chunks
from services.preprocessor.layout import Layout, of_document, of_messages
from services.preprocessor.source import Message
from tests.examples import one_in

_NOW = Instant(0)
WORDS = ["we", "moved", "the", "primary", "database", "from", "MySQL", "to", "PostgreSQL", "16", "数据库"]


def prose(seed: int, sentences: int, paragraph: int = 5) -> str:
    """Sentences of known words, in paragraphs under headings now and then."""
    chance = random.Random(seed)
    parts: list[str] = []
    for number in range(sentences):
        words = chance.choices(WORDS, k=chance.randint(3, 30))
        parts.append(" ".join(words).capitalize() + chance.choice([". ", "! ", "? ", "。"]))
        if number % paragraph == paragraph - 1:
            parts.append(chance.choice(["\n\n", "\r\n\r\n", "\n\n## Next\n\n", "\n \n"]))
    return "".join(parts)


def exactly(count: int) -> str:
    """A text of so many tokens."""
    text = " word" * count
    assert tokens.count(text) == count
    return text


def check_laws(text: str, found: list[Span]) -> None:
    assert "".join(text[span.start : span.end] for span in found) == text
    borders = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    for index, span in enumerate(found):
        assert span.tokens == tokens.count(text[span.start : span.end])
        assert 0 < span.tokens <= MAXIMUM
        assert span.end in borders
        if span.tokens < MINIMUM:
            for one, other in ((index - 1, index), (index, index + 1)):
                if one >= 0 and other < len(found):
                    joined = text[found[one].start : found[other].end]
                    assert tokens.count(joined) > MAXIMUM or joined == text


def test_one_token_less_than_the_threshold_is_one_chunk() -> None:
    text = exactly(THRESHOLD - 1)
    assert chunks(text, ()) == [Span(0, len(text), 1_799)]


def test_the_threshold_makes_several_chunks_of_enough_tokens() -> None:
    found = chunks(exactly(THRESHOLD), ())
    assert len(found) == 2
    assert all(MINIMUM <= span.tokens <= MAXIMUM for span in found)


def test_no_text_is_no_chunk() -> None:
    assert chunks("", ()) == []


@given(st.integers(0, 10_000), st.integers(80, 900), st.integers(1, 40))
@settings(max_examples=40)
def test_laws_for_documents(seed: int, sentences: int, paragraph: int) -> None:
    text = prose(seed, sentences, paragraph)
    check_laws(text, of_document(text, _NOW).cut())


PIECES = st.sampled_from(
    [
        "a",
        "é",
        "e\u0301",
        " ",
        "\n",
        "\n\n",
        ". ",
        "。",
        "好",
        "👨\u200d👩\u200d👧",
        "🇩🇪",
        "1",
        "- ",
        "\u0301",
        "\u200d",
        "ส",
        "```\n",
    ]
)


@given(st.lists(st.tuples(PIECES, st.integers(1, 1_500)), min_size=1, max_size=12))
@settings(max_examples=40)
def test_laws_for_any_text(runs: list[tuple[str, int]]) -> None:
    text = "".join(piece * count for piece, count in runs)
    found = of_document(text, _NOW).cut()
    if not any(piece in "\u0301\u200d" and count > 300 for piece, count in runs):
        check_laws(text, found)
    assert "".join(text[span.start : span.end] for span in found) == text
    assert all(span.tokens <= MAXIMUM for span in found)


SIZES = st.lists(st.integers(1, 2_500), min_size=1, max_size=12)


@given(SIZES)
@settings(max_examples=60)
def test_conversations_are_cut_between_messages(sizes: list[int]) -> None:
    layout = conversation(sizes)
    found = layout.cut()
    check_laws(layout.text, found)
    lengths = dict(zip(layout.units, _lengths(layout), strict=True))
    for span in found[1:]:
        inside = max(start for start in layout.units if start <= span.start)
        assert span.start == inside or lengths[inside] > MAXIMUM, "a message that fits one chunk is not cut"


def test_a_message_that_is_too_large_is_cut_like_a_text() -> None:
    text = "\n\n".join(exactly(700).strip() for _ in range(6))
    layout = of_messages([Message(text, "Maya", Role.USER, "m1", _NOW)])
    found = layout.cut()
    assert len(found) > 2
    assert all(layout.text[: span.start].endswith("\n\n") for span in found[1:])


def test_a_cut_prefers_paragraphs_then_sentences() -> None:
    sentence = "We moved the primary database to another machine. "
    one = sentence * 60
    text = (one + "\n\n") * 10
    assert all(text[: span.start].endswith("\n\n") for span in of_document(text, _NOW).cut()[1:])
    line = sentence * 600
    assert all(line[: span.start].endswith(". ") for span in chunks(line, ())[1:])


def test_a_heading_goes_with_what_is_under_it() -> None:
    text = "".join(f"## Part {number}\n\n" + "A plain sentence of it. " * 150 + "\n\n" for number in range(8))
    for span in of_document(text, _NOW).cut():
        assert text[span.start : span.end].startswith("## Part")


def test_a_chunk_carries_the_headings_above_it() -> None:
    body = "A plain sentence of it. " * 150 + "\n\n"
    text = f"# Atlas\n\n{body}## Storage\n\n{body}{body}{body}# Borealis\n\n{body}{body}"
    layout = of_document(text, _NOW)
    paths = [layout.heading_at(span.start) for span in layout.cut()]
    assert paths[0] == ()
    assert ("Atlas", "Storage") in paths
    assert paths[-1] == ("Borealis",) or text[layout.cut()[-1].start :].startswith("# Borealis")


@pytest.mark.parametrize("piece", ["a", "1", " ", "\n", "好", "!", "\n ", "ส", "x "])
def test_one_line_of_100_000_characters(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    check_laws(text, of_document(text, _NOW).cut())


def test_a_text_of_two_mebibytes() -> None:
    text = (prose(1, 2_000) * 20)[: 2 * 1024 * 1024]
    found = of_document(text, _NOW).cut()
    assert "".join(text[span.start : span.end] for span in found) == text
    assert all(span.tokens <= MAXIMUM for span in found)


def test_a_grapheme_that_passes_the_maximum_gives_way_to_it() -> None:
    text = "a" + "\u0301" * 20_000
    found = chunks(text, ())
    assert "".join(text[span.start : span.end] for span in found) == text
    assert all(span.tokens <= MAXIMUM for span in found)


def conversation(sizes: list[int]) -> Layout:
    """Messages of about so many tokens."""
    roles = (Role.USER, Role.ASSISTANT)
    return of_messages([Message(exactly(size), "", roles[at % 2], "", _NOW) for at, size in enumerate(sizes)])


def _lengths(layout: Layout) -> list[int]:
    ends = [*layout.units[1:], len(layout.text)]
    return [tokens.count(layout.text[start:end]) for start, end in zip(layout.units, ends, strict=True)]


KINDS = {
    "English": "The gateway keeps a ledger; each hold is settled once. It says so in every receipt!\n\n",
    "Chinese": "主数据库在一月迁移到了新的版本。支付服务仍然读取旧表！是否需要回滚？暂时没有计划。\n\n",
    "code": "```python\nfor hold in holds:\n    # settled once. never twice\n    settle(hold)\n\n```\n\n",
    "a table": "| job | held | spent |\n|---|---|---|\n| 17 | 1,000 | 20. |\n| 18 | 5 | 3 |\n\n",
    "mixed newlines": (
        "one line\r\nanother\rold Macs\n\r\n\u2028 separated \u2029\x0b and\x0c more\x85.\r\n\r\n"
    ),
    "emoji": "Done 👨‍👩‍👧‍👦🏽! 🇦🇹🇨🇳 e\u0301te\u0301. 👍🏿👍🏿 ❤️‍🔥 नमस्ते สวัสดี\n\n",
    "headings": "# Atlas\n\n## Storage\n\nIt is kept in PostgreSQL. It has two replicas.\n\n### Backups\n\n",
    "quotes": (
        "> She said: \u201cWe moved.\u201d \u2018Why?\u2019 \u2013 \u300c\u4e3a\u4ec0\u4e48\uff1f\u300d "
        "He left\u2026 Dr. Ito stayed, e.g. here.\n"
    ),
}


@given(st.permutations(list(KINDS)), st.integers(0, 10_000), st.integers(1, 8))
@settings(max_examples=one_in(8))
def test_laws_for_texts_of_every_kind(order: list[str], seed: int, most: int) -> None:
    """Runs of each kind, long and short, one after the other; as a document, and as messages."""
    chance = random.Random(seed)
    said = [KINDS[kind] * chance.randint(1, 12 * most) for kind in order]
    text = "".join(said)
    layout = of_document(text, _NOW)
    found = layout.cut()
    check_laws(text, found)
    for span in found[1:]:
        if "Backups" in layout.heading_at(span.start):
            assert layout.heading_at(span.start)[:2] == ("Atlas", "Storage")
    talk = of_messages([Message(one, "Ana", Role.USER, "", _NOW) for one in said])
    check_laws(talk.text, talk.cut())


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "Chinese" else pytest.mark.slow) for kind in KINDS]
)
def test_one_line_of_a_kind_of_100_000_characters(kind: str) -> None:
    piece = " ".join(KINDS[kind].split())
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    check_laws(text, of_document(text, _NOW).cut())
