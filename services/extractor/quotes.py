"""Quotes: where the words that a fact rests on literally stand in the raw text of a turn.

Texts are compared after Unicode composition (NFC) and with white space collapsed; nothing looser.
"""

import unicodedata
from dataclasses import dataclass
from typing import Self

MAX_PLACES = 100
"""Places of one quote that are looked at."""


@dataclass(frozen=True, slots=True)
class Place:
    """`[start, end)` in the composed text of a turn."""

    start: int
    end: int

    def meets(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end


@dataclass(frozen=True, slots=True)
class Raw:
    """A turn's composed text, the same with white space collapsed, and where each character of it stands."""

    text: str
    collapsed: str
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        text = unicodedata.normalize("NFC", text)
        kept = [
            at for at, character in enumerate(text) if not character.isspace() or not _follows_space(text, at)
        ]
        collapsed = "".join(" " if text[at].isspace() else text[at] for at in kept)
        return cls(text, collapsed, tuple(kept))

    def places(self, quote: str) -> list[Place]:
        """Where `quote` stands, in order; none for a quote without a letter or digit."""
        words = " ".join(unicodedata.normalize("NFC", quote).split())
        found: list[Place] = []
        if not any(character.isalnum() for character in words):
            return found
        at = self.collapsed.find(words)
        while at >= 0 and len(found) < MAX_PLACES:
            found.append(Place(self.offsets[at], self.offsets[at + len(words) - 1] + 1))
            at = self.collapsed.find(words, at + 1)
        return found


def _follows_space(text: str, at: int) -> bool:
    return at > 0 and text[at - 1].isspace()
