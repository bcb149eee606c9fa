"""Versions of a document: what is new in one, and what it no longer says."""

from itertools import pairwise

from hypothesis import given
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
    layout = changes(text, before, NOW)
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
    layout = changes(after, ATLAS, NOW)
    assert layout is not None
    assert layout.text == "It uses PostgreSQL 16. It has one replica."
    assert layout.heading_at(0) == ("Atlas", "Storage")


def test_changes_of_two_sections_stand_under_what_they_share() -> None:
    after = ATLAS.replace("MySQL 8.0", "PostgreSQL 16").replace("Kiran", "Wen")
    layout = changes(after, ATLAS, NOW)
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
    layout = changes(before, before, NOW, missed)
    assert layout is not None
    assert layout.text == "Kite uses Redis. It is old."
    assert changes(before, before, NOW, missed_sentences("It is old.", "It is old.")) is None
