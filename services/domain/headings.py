"""Markdown headings (`## Storage`): their level and title, and the path of those above a place."""

import re
from dataclasses import dataclass

_HEADING = re.compile(r"[ ]{0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_HEADING_CHARACTERS = 500
"""A longer line is no heading but text that begins with a #."""


@dataclass(frozen=True, slots=True)
class Heading:
    """`level` is 1 to 6; `title` is on one line and not empty."""

    level: int
    title: str


def heading_of(line: str) -> Heading | None:
    """The heading that one line of text is, or None."""
    line = line.rstrip("\r\n")
    if "#" not in line[:4] or len(line) > _HEADING_CHARACTERS:
        return None
    match = _HEADING.fullmatch(line)
    return Heading(len(match[1]), match[2].strip()) if match and match[2] and match[2].strip() else None


def under(path: tuple[Heading, ...], heading: Heading) -> tuple[Heading, ...]:
    """The path of headings that holds after `heading`, which stood under `path`."""
    return (*(above for above in path if above.level < heading.level), heading)


def is_heading(text: str) -> bool:
    """True for a passage that is only a heading: context for what follows, nothing to search for."""
    if "#" not in text:
        return False  # the cheap test first: most texts have none
    return "\n" not in text.strip() and heading_of(text.strip()) is not None
