"""Blocks: the paragraphs and Markdown headings of a text, each with the headings above it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.domain.headings import Heading, heading_of, under

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")

Path = tuple[Heading, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One paragraph or heading: `[start, end)` in code points, without the white space around it."""

    start: int
    end: int
    path: Path
    heading: Heading | None = None


def blocks(text: str, above: Path = ()) -> list[Block]:
    """The blocks of `text`, which itself stands under the headings `above`. Linear in the text.

    A blank line ends a paragraph, a heading line stands alone, a closed code fence is one paragraph whatever
    it holds.
    """
    return _Scan(text, above).run()


def paragraph_starts(found: Sequence[Block]) -> list[int]:
    """Where a chunk may begin: at each block, but not between a heading and what follows it."""
    starts = []
    for before, block in zip((None, *found), found, strict=False):
        if before is None or before.heading is None:
            starts.append(block.start)
    return starts


def is_fenced(paragraph: str) -> bool:
    """True for a paragraph that begins with a code fence."""
    return _FENCE.match(paragraph) is not None


class _Scan:
    """One pass over the lines of a text."""

    def __init__(self, text: str, above: Path) -> None:
        self._text = text
        self._path = above
        self._found: list[Block] = []
        self._open: int | None = None
        self._unclosed: set[str] = set()

    def run(self) -> list[Block]:
        at = 0
        while at < len(self._text):
            end = self._text.find("\n", at) + 1 or len(self._text)
            line = self._text[at:end]
            if line.isspace():
                self._close(at)
            elif heading := heading_of(line):
                self._close(at)
                self._path = under(self._path, heading)
                self._add(at, end, self._path[:-1], heading)
            else:
                if self._open is None:
                    self._open = at
                end = self._fence_end(line, end)
            at = end
        self._close(len(self._text))
        return self._found

    def _fence_end(self, line: str, end: int) -> int:
        """Where the code fence that `line` opens is closed, past its line; `end` if it opens none."""
        match = _FENCE.match(line)
        if match is None or match[1][:3] in self._unclosed:
            return end
        mark = match[1][:3]
        closing = re.compile(rf"^[ ]{{0,3}}{mark}{mark[0]}*[ \t\r]*$", re.MULTILINE).search(self._text, end)
        if closing is None:
            self._unclosed.add(mark)  # looked for once: an unclosed fence is just text
            return end
        return self._text.find("\n", closing.end()) + 1 or len(self._text)

    def _close(self, end: int) -> None:
        if self._open is not None:
            self._add(self._open, end, self._path, None)
            self._open = None

    def _add(self, start: int, end: int, path: Path, heading: Heading | None) -> None:
        raw = self._text[start:end]
        first = start + len(raw) - len(raw.lstrip())
        self._found.append(Block(first, start + len(raw.rstrip()), path, heading))
