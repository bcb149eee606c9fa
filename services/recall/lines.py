"""Lines of the prompt block, one for an item, in the grammar of services/domain/recalled.py."""

import re
from dataclasses import dataclass
from enum import IntEnum

from services.domain.instants import Instant, Precision, moment
from services.domain.recalled import render_fact_line, render_passage_line, render_voice_line

CUT = "…"
"""Stands where a text was cut to fit."""

_EVIDENCE = re.compile(r"\[(\s*e\d[^\]]*)\]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\u202a-\u202e\u2066-\u2069]")
"""Controls, and marks that turn the reading direction around for what follows."""


class Section(IntEnum):
    """The parts of a block, in their order."""

    FACTS = 1
    VOICE = 2
    PASSAGES = 3


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact with its dates. `text` is the object: what is cut when there is no room."""

    subject: str
    predicate: str
    text: str
    since: str
    until: str
    reference: str
    section: Section = Section.FACTS

    def render(self, characters: int | None = None) -> str:
        """The line, with at most this many characters of `text`."""
        return render_fact_line(
            name(self.subject),
            name(self.predicate),
            cut(name(self.text), characters),
            self.since,
            self.until,
            self.reference,
        )


@dataclass(frozen=True, slots=True)
class VoiceLine:
    """A whole sentence of the user's voice."""

    text: str
    since: str
    until: str
    reference: str
    section: Section = Section.VOICE

    def render(self, characters: int | None = None) -> str:
        """The line, with at most this many characters of the sentence."""
        return render_voice_line(cut(tame(self.text), characters), self.since, self.until, self.reference)


@dataclass(frozen=True, slots=True)
class PassageLine:
    """What was literally said, by whom and when."""

    said_on: str
    speaker: str
    text: str
    reference: str
    section: Section = Section.PASSAGES

    def render(self, characters: int | None = None) -> str:
        """The line, with at most this many characters of the passage."""
        return render_passage_line(
            self.said_on, name(self.speaker), cut(tame(self.text), characters), self.reference
        )


Line = FactLine | VoiceLine | PassageLine


def tame(text: str) -> str:
    """Text of users as it may stand in a line: on one line, and naming no evidence of its own."""
    flat = " ".join(text.split())
    if flat.isprintable() and "[" not in flat:
        return flat  # most texts, and the rest is dear
    return _EVIDENCE.sub(r"(\1)", _UNPRINTABLE.sub("", flat))


def name(text: str) -> str:
    """The same for a name, which also draws no arrow and opens no quotation."""
    return tame(text).replace("--[", "-- [").replace("]--", "] --").replace('"', "'")


def cut(text: str, characters: int | None) -> str:
    """The text, or its beginning with a mark that it goes on."""
    if characters is None or len(text) <= characters:
        return text
    return text[:characters].rstrip() + CUT


def date_text(at: Instant | None, precision: Precision = Precision.DAY) -> str:
    """A date as fine as it is known: 2024, 2024-02 or 2024-02-01; "" for none."""
    if at is None:
        return ""
    day = moment(at).date().isoformat()
    match precision:
        case Precision.YEAR:
            return day[:4]
        case Precision.MONTH | Precision.QUARTER:
            return day[:7]
        case _:
            return day
