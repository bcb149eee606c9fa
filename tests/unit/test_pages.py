"""What people read is in step with protos, kernel and itself, in both languages; all that is typed runs."""

import re
from collections import Counter

import pytest

from scripts import api_page, timeline_figure
from tests.machine import ROOT
from tests.pages import OTHER, RUNNABLE, Block, Page, page_of, pages, shows

PAGES = pages()
BLOCKS = [block for page in PAGES for block in page.blocks]
NOT_RUN = {
    "CONTRIBUTING.md": 2,
    "README.md": 4,
    "README.zh-CN.md": 4,
    "docs/command-line.md": 2,
    "docs/console.md": 1,
    "docs/cookbook.md": 1,
    "docs/erasing.md": 1,
    "docs/operations.md": 7,
    "docs/operators-guide.md": 1,
    "docs/production.md": 1,
    "docs/quickstart.md": 2,
    "examples/node/README.md": 1,
    "k8s/README.md": 4,
}
"""By page, how many examples give a reason why they do not run."""
TWINS = (page_of("README.md"), page_of("README.zh-CN.md"))
CALL = re.compile(r"\b(?:[A-Z][a-z]+){2,}\b")
"""Names of calls and products: the same in every language."""
ELSEWHERE = ("https://", "http://", "mailto:")


def test_the_reference_is_what_the_protos_say() -> None:
    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.page(), "python scripts/api_page.py"


def test_the_picture_is_what_the_kernel_derives() -> None:
    assert timeline_figure.FIGURE.read_text(encoding="utf-8") == timeline_figure.figure(), (
        "python scripts/timeline_figure.py"
    )


def test_every_block_runs_or_says_why_not() -> None:
    unknown = [str(block) for block in BLOCKS if block.language not in RUNNABLE | OTHER]
    assert not unknown, f"name the language: one that runs {RUNNABLE}, or one that nobody types {OTHER}"


def test_a_reason_is_given_only_where_something_would_run() -> None:
    idle = [str(block) for block in BLOCKS if block.reason and block.language not in RUNNABLE]
    assert not idle


def test_what_does_not_run_is_known() -> None:
    """One more is a decision: most can run."""
    assert Counter(block.page for block in BLOCKS if block.reason) == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    lost = [link for link in page.links if not link.startswith(ELSEWHERE) and not leads(page, link)]
    assert not lost


def leads(page: Page, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.path.parent / name).resolve() if name else page.path
    return target.exists() and (not anchor or anchor in page_of(target.relative_to(ROOT).as_posix()).anchors)


def test_the_index_names_every_page() -> None:
    index = page_of("docs/README.md")
    beside = {page.path.name for page in PAGES if page.path.parent == index.path.parent} - {"README.md"}
    assert beside <= set(index.links)


def test_blocks_are_read_as_they_are_written() -> None:
    refused = "a\n\n<!-- not run: no cluster -->\n```console\nkubectl\n```\n\n"
    source = refused + "```python\n1\n```\n\n```text\n2\n```\n"
    page = Page("x.md")
    page.__dict__["source"] = source
    assert page.blocks == (
        Block("x.md", 4, "console", "kubectl\n", "no cluster"),
        Block("x.md", 8, "python", "1\n", output="2\n"),
        Block("x.md", 12, "text", "2\n"),
    )
    assert [block.runs for block in page.blocks] == [False, True, False]


@pytest.mark.parametrize(
    ("expected", "printed", "is_shown"),
    [
        ("job … done\n", "job 0f6c done \n", True),
        ("a\nb", "a", False),
        ("a", "a\nb", False),
        ("a.c", "abc", False),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…", "a", True),
        ("a\n…\nd", "a\nb", False),
        ("", "", True),
    ],
)
def test_outputs_are_compared(expected: str, printed: str, is_shown: bool) -> None:
    assert shows(expected, printed) is is_shown


def test_the_two_languages_show_the_same() -> None:
    """What is typed and shown is letter for letter the same, and so is where the links lead."""
    english, chinese = TWINS
    assert [level for level, _ in english.headings] == [level for level, _ in chinese.headings]
    assert [part(block) for block in english.blocks] == [part(block) for block in chinese.blocks]
    assert Counter(english.links) - Counter(["README.zh-CN.md"]) == (
        Counter(chinese.links) - Counter(["README.md"])
    )
    for mark in ("\n\n", "\n* ", "\n| ", "\n\n**"):
        assert english.prose.count(mark) == chinese.prose.count(mark), mark


def test_the_two_languages_name_the_same() -> None:
    english, chinese = TWINS
    for name in (re.compile(r"`[^`\n]+`"), CALL):
        assert Counter(name.findall(english.prose)) == Counter(name.findall(chinese.prose))


def part(block: Block) -> tuple[str, str, str]:
    return block.language, block.text, block.reason
