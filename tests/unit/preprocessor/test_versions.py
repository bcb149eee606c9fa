"""Versions of a document: what is new in one, and what it no longer says."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.headings import Heading
from services.domain.ids import EpisodeId
from services.domain.instants import Instant
from services.domain.memory import Passage
from services.domain.scope import GraphId, Scope, TenantId
from services.preprocessor.blocks import blocks, paragraph_starts
from services.preprocessor.layout import of_document
from services.preprocessor.passages import passages_of
from services.preprocessor.versions import changes, missed_sentences, removed
from tests.examples import one_in

NOW = Instant(0)
SCOPE = Scope(TenantId("t"), GraphId("g"))

ATLAS = """\
# Atlas

Atlas is the billing service.

## Storage

It uses MySQL 8.0. It has one replica.

It keeps backups for a month.

## Deploy

Kiran deploys it on Fridays.
"""


def new_text(text: str, before: str) -> str | None:
    layout = changes(text, before, passages(before), NOW)
    return None if layout is None else layout.text


def passages(text: str) -> list[Passage]:
    layout = of_document(text, NOW)
    spans = layout.cut()
    return passages_of(SCOPE, layout, spans, [EpisodeId(f"e{at}") for at in range(len(spans))])


def gone(before: str, after: str) -> list[str]:
    by_id = {passage.id: passage.text for passage in passages(before)}
    return [by_id[id] for id in removed(passages(before), after)]


def test_blocks_with_their_headings() -> None:
    atlas, storage = Heading(1, "Atlas"), Heading(2, "Storage")
    found = {ATLAS[block.start : block.end]: block for block in blocks(ATLAS)}
    assert found["It keeps backups for a month."].path == (atlas, storage)
    assert found["## Deploy"].path == (atlas,)
    assert found["## Deploy"].heading == Heading(2, "Deploy")
    assert found["Kiran deploys it on Fridays."].path == (atlas, Heading(2, "Deploy"))


def test_a_code_fence_is_one_paragraph_and_holds_no_heading() -> None:
    text = "Run:\n```sh\n# not a heading\n\nmake\n```\nDone.\n\n```\nnever closed\n\n# Heading\n"
    assert [text[block.start : block.end] for block in blocks(text)] == [
        "Run:\n```sh\n# not a heading\n\nmake\n```\nDone.",
        "```\nnever closed",
        "# Heading",
    ]


def test_no_chunk_begins_between_a_heading_and_its_text() -> None:
    starts = paragraph_starts(blocks(ATLAS))
    assert [ATLAS[start:].splitlines()[0] for start in starts] == [
        "# Atlas",
        "## Storage",
        "It keeps backups for a month.",
        "## Deploy",
    ]


@given(st.text("a# \n`.。"))
def test_blocks_hold_every_word_in_order(text: str) -> None:
    found = blocks(text)
    assert "".join(" ".join(text[one.start : one.end] for one in found).split()) == "".join(text.split())
    assert all(one.end <= other.start for one, other in pairwise(found))


def test_a_changed_paragraph_is_kept_whole_under_its_headings() -> None:
    after = ATLAS.replace("MySQL 8.0", "PostgreSQL 16")
    layout = changes(after, ATLAS, passages(ATLAS), NOW)
    assert layout is not None
    assert layout.text == "It uses PostgreSQL 16. It has one replica."
    assert layout.heading_at(0) == ("Atlas", "Storage")


def test_changes_of_two_sections_stand_under_what_they_share() -> None:
    after = ATLAS.replace("MySQL 8.0", "PostgreSQL 16").replace("Kiran", "Wen")
    layout = changes(after, ATLAS, passages(ATLAS), NOW)
    assert layout is not None
    assert layout.text == (
        "## Storage\n\nIt uses PostgreSQL 16. It has one replica.\n\n## Deploy\n\nWen deploys it on Fridays."
    )
    assert layout.heading_at(0) == ("Atlas",)
    assert layout.heading_at(layout.text.index("Wen")) == ("Atlas", "Deploy")


def test_moving_breaking_and_joining_paragraphs_is_no_change() -> None:
    first, _, last = ATLAS.partition("## Deploy")
    assert new_text(f"## Deploy{last}\n{first}", ATLAS) is None
    assert new_text(ATLAS.replace("MySQL 8.0. It", "MySQL 8.0.\nIt"), ATLAS) is None
    assert new_text(ATLAS.replace("replica.\n\nIt keeps", "replica. It keeps"), ATLAS) is None
    assert new_text(ATLAS.replace("\n", "\r\n"), ATLAS) is None
    assert new_text(ATLAS.replace("## Storage", "## Database"), ATLAS) is None


def test_a_heading_with_nothing_under_it_says_something() -> None:
    assert new_text(ATLAS + "\n## Atlas is retired\n", ATLAS) == "## Atlas is retired"


def test_what_is_gone_is_what_the_new_text_does_not_say() -> None:
    after = ATLAS.replace("It keeps backups for a month.\n\n", "").replace("MySQL 8.0", "PostgreSQL 16")
    assert gone(ATLAS, after) == ["It uses MySQL 8.0. It has one replica.", "It keeps backups for a month."]
    assert gone(ATLAS, ATLAS + "\nMore.") == []


def test_a_text_inside_another_sentence_is_gone() -> None:
    assert gone("We use Redis.\n\nMore.", "We use Redis. no more, since May.\n\nMore.") == ["We use Redis."]
    assert gone("We use Redis\n\nMore.", "We use Redis no more\n\nMore.") == ["We use Redis"]


def test_a_paragraph_that_was_cut_is_still_said_by_a_text_that_has_it() -> None:
    sentence = "one long sentence of very many words " * 900 + "."
    before = f"Short one.\n\n{sentence}\n\nAnother.\n"
    assert len({passage.episode for passage in passages(before)}) > 3
    assert gone(before, f"{sentence}\n\nShort one.\n\nAnother.") == []
    assert len(gone(before, "Another.")) == len(passages(before)) - 1


PARAGRAPHS = st.lists(
    st.sampled_from([f"Paragraph number {n} says so. And more." for n in range(8)]), max_size=8
)


@given(PARAGRAPHS, PARAGRAPHS)
def test_new_and_gone_are_the_two_differences(before: list[str], after: list[str]) -> None:
    old, new = "\n\n".join(before), "\n\n".join(after)
    fresh = [paragraph for paragraph in after if paragraph not in before]
    assert (new_text(new, old) or "") == "\n\n".join(fresh)
    assert set(gone(old, new)) == {paragraph for paragraph in before if paragraph not in after}


def test_what_could_not_be_understood_is_a_change_until_it_is() -> None:
    before = "Atlas uses MySQL. It is old.\n\nKite uses Redis. It is old.\n"
    missed = missed_sentences("Kite uses Redis. It is old.", "Atlas uses MySQL. It is old.")
    layout = changes(before, before, passages(before), NOW, missed)
    assert layout is not None
    assert layout.text == "Kite uses Redis. It is old."
    assert (
        changes(before, before, passages(before), NOW, missed_sentences("It is old.", "It is old.")) is None
    )


def line_of(numbers: list[int], mark: str = ". ") -> str:
    """A paragraph on one line, too long for a chunk: a sentence of some twenty words for each number."""
    words = "says what it says of the matter at hand, and no more than that is said in it"
    return mark.join(f"Sentence {number} {words}" for number in numbers) + mark.strip()


LONG = list(range(150))
"""Some 3,700 tokens, as numbers of sentences."""


def test_of_a_paragraph_that_no_chunk_holds_what_is_new_is_kept_with_its_neighbours() -> None:
    """And what stood in one passage with a sentence that is gone, as that passage is gone too."""
    added = [*LONG[:40], 900, *LONG[40:]]
    assert new_text(line_of(added), line_of(LONG)) == line_of([38, 39, 900, 40, 41])
    assert new_text(line_of(added, "。"), line_of(LONG, "。")) == line_of([38, 39, 900, 40, 41], "。")
    assert gone(line_of(LONG), line_of(added)) == []
    for after in ([*LONG[:40], 900, *LONG[41:]], [*LONG[:40], *LONG[41:]]):
        (lost,) = gone(line_of(LONG), line_of(after))
        kept = new_text(line_of(after), line_of(LONG)) or ""
        left = [number for number in after if f"Sentence {number} " in lost]
        assert 20 < len(left) < 80
        assert line_of([one for one in after if one in left or one == 900]) in kept
        assert kept.count("Sentence ") <= len(left) + 5


@given(st.lists(st.integers(0, 149), max_size=3, unique=True), st.lists(st.integers(0, 140), max_size=3))
@settings(max_examples=one_in(8))
def test_what_a_long_line_says_is_in_a_passage_that_stays_or_in_what_is_kept(
    left_out: list[int], at: list[int]
) -> None:
    after = [number for number in LONG if number not in left_out]
    for number, place in enumerate(at):
        after.insert(place, 900 + number)
    before, text = line_of(LONG), line_of(after)
    lost = "".join(gone(before, text))
    kept = new_text(text, before) or ""
    for number in after:
        assert f"Sentence {number} " in kept or (number < 900 and f"Sentence {number} " not in lost)


def test_a_paragraph_that_lost_a_sentence_is_said_anew() -> None:
    after = ATLAS.replace(" It has one replica.", "")
    assert new_text(after, ATLAS) == "It uses MySQL 8.0."
    assert gone(ATLAS, after) == ["It uses MySQL 8.0. It has one replica."]


SENTENCES = [f"Sentence number {n} says so." for n in range(6)]
DOCUMENTS = st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3), max_size=4)


@given(DOCUMENTS, DOCUMENTS)
def test_each_sentence_of_a_version_is_in_a_passage_that_stays_or_is_said_anew(
    before: list[list[str]], after: list[list[str]]
) -> None:
    old, new = ("\n\n".join(" ".join(part) for part in document) for document in (before, after))
    lost = gone(old, new)
    stays = [part for part in (" ".join(one) for one in before) if part not in lost]
    kept = new_text(new, old) or ""
    for sentence in {one for part in after for one in part}:
        assert sentence in kept or any(sentence in part for part in stays)
    if all(part in before for part in after) and not lost:
        assert kept == ""


def test_code_and_shorter_paragraphs_are_kept_whole() -> None:
    short = line_of(LONG[:40])
    assert new_text(short + " More.", short) == short + " More."
    code = "```\n" + "\n".join(f"# step {number}\nrun({number})" for number in range(400)) + "\n```"
    assert new_text(code.replace("run(7)", "run(8000)"), code) == code.replace("run(7)", "run(8000)")
    headed = line_of(LONG).replace("Sentence 40 ", "# Sentence 40 ")
    added = headed.replace("Sentence 42 ", "Sentence 942 says it. Sentence 42 ")
    assert new_text(added, headed) == added, "a part of it would read as a heading"
