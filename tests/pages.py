"""The pages that people read: their headings, links and blocks, and which blocks are examples that run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tests.machine import ROOT

RUNNABLE = {"python", "console"}
OTHER = {"text", "sql", "json", "javascript", "yaml"}
"""Languages of blocks that nobody types."""

_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n+)?```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. It runs, unless its page gives a reason why not, or its language is none that runs."""

    page: str
    line: int
    language: str
    text: str
    reason: str = ""
    output: str | None = None
    """What the page shows as its output: the text block that follows at once."""

    @property
    def runs(self) -> bool:
        return self.language in RUNNABLE and not self.reason

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Page:
    """A Markdown file of the repository."""

    name: str

    @property
    def path(self) -> Path:
        return ROOT / self.name

    @cached_property
    def source(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(_blocks(self.name, self.source))

    @cached_property
    def prose(self) -> str:
        """Without blocks."""
        return _FENCE.sub("", self.source)

    @cached_property
    def headings(self) -> list[tuple[int, str]]:
        return [(len(marks), words.strip()) for marks, words in _HEADING.findall(self.prose)]

    @cached_property
    def links(self) -> list[str]:
        return _LINK.findall(re.sub(r"`[^`\n]*`", "``", self.prose))

    @cached_property
    def anchors(self) -> set[str]:
        """The parts that a link may lead to, as GitHub names them."""
        seen: dict[str, int] = {}
        names = set()
        for _, words in self.headings:
            plain = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            times = seen.get(plain, 0)
            seen[plain] = times + 1
            names.add(f"{plain}-{times}" if times else plain)
        return names


def _blocks(page: str, source: str) -> Iterator[Block]:
    found = list(_FENCE.finditer(source))
    for place, match in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else None
        follows = after is not None and not source[match.end() : after.start()].strip()
        yield Block(
            page,
            source.count("\n", 0, match.start("language")) + 1,
            match["language"].strip(),
            match["text"],
            match["reason"] or "",
            after["text"] if after is not None and follows and after["language"] == "text" else None,
        )


@cache
def page_of(name: str) -> Page:
    """The page of a path from the root, read once."""
    return Page(name)


def pages() -> list[Page]:
    """Every page for users and operators; decisions, changes and the notes of folders are not theirs."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "runbooks").glob("*.md")]
    found += [ROOT / "k8s" / "README.md", *(ROOT / "examples").glob("*/README.md")]
    names = sorted(path.relative_to(ROOT).as_posix() for path in found)
    return [page_of(name) for name in names if name != "CHANGELOG.md"]


def shows(expected: str, printed: str) -> bool:
    """Whether a page's output is what was printed.

    `…` stands for whatever changes from run to run, a line of it alone for any number of lines.
    """
    want = "".join(
        "(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + "\n"
        for line in _trimmed(expected)
    )
    return re.fullmatch(want, "".join(f"{line}\n" for line in _trimmed(printed))) is not None


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
