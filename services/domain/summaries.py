"""What is written after an ingest: labels, titles, cited summaries of sessions, and the persona.

What a machine wrote is sentences, each with what it rests on: statements, voice aspects, and a digest of how
these read when it was written. A sentence is shown only while they still read so.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from services.domain.ids import Revision, SessionId, StatementId, VoiceId
from services.domain.instants import BEGINNING, Instant

TITLE_WORDS = (3, 8)
"""The fewest and the most words of a title."""
MAX_LABELS = 3
"""Topic names of one session."""
LABEL_CHARACTERS = 64
SAME_LABEL = 0.85
"""The least cosine of two names that are one label."""

_CJK = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_]+(?:['’.+#&/-]*[^\W_]+)*[+#]*")


class Section(StrEnum):
    """The parts of a persona that the service writes, in their order; users may have others."""

    IDENTITY = "identity"
    PREFERENCES = "preferences"
    DIRECTIVES = "directives"


@dataclass(frozen=True, slots=True)
class Cited:
    """One sentence with what it rests on. `basis` is the digest of how that read when it was written."""

    text: str
    statements: tuple[StatementId, ...] = ()
    voice: tuple[VoiceId, ...] = ()
    basis: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return (*self.statements, *self.voice)


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What is left of a session in short. `made_from` is a digest of all that it was made from."""

    session: SessionId
    title: str = ""
    labels: tuple[str, ...] = ()
    sentences: tuple[Cited, ...] = ()
    updated_at: Instant = BEGINNING
    revision: Revision = Revision(0)
    made_from: str = ""
    model: str = ""
    prompt_version: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A topic name, unique by its lower-cased form, and how many sessions carry it."""

    name: str
    sessions: int


@dataclass(frozen=True, slots=True)
class PersonaSection:
    """One part of a persona: sentences of the service, or, where it is protected, the user's own text."""

    id: str
    title: str
    text: str = ""
    sentences: tuple[Cited, ...] = ()
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Persona:
    """The document about a graph's user. `version` counts its changes, from 1."""

    sections: tuple[PersonaSection, ...] = ()
    version: int = 0
    updated_at: Instant = BEGINNING
    revision: Revision = Revision(0)
    made_from: str = ""
    model: str = ""
    prompt_version: str = ""

    @property
    def protected(self) -> frozenset[str]:
        """Ids of the sections that are the user's."""
        return frozenset(section.id for section in self.sections if section.protected)


def basis_of(text: str, periods: Iterable[tuple[Instant | None, Instant | None]]) -> str:
    """A digest of how one fact reads: its sentence, and when it holds, earliest first; 32 hex digits."""
    return _digest([text, [list(period) for period in periods]])


def basis_of_all(facts: Iterable[tuple[str, str]]) -> str:
    """A digest of how facts read, by their ids and digests, whatever their order; 32 hex digits."""
    return _digest(sorted(set(facts)))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode()).hexdigest()[:32]


def label_key(name: str) -> str:
    """What a label is unique by: its lower-cased form, spaces collapsed."""
    return " ".join(name.split()).lower()


def words_in(text: str) -> int:
    """How many words a title has; of Chinese, two characters count as one."""
    characters = len(_CJK.findall(text))
    return (characters + 1) // 2 + len(_WORD.findall(_CJK.sub(" ", text)))


def is_title(text: str) -> bool:
    """Whether a text is one line of 3 to 8 words."""
    return "\n" not in text and TITLE_WORDS[0] <= words_in(text) <= TITLE_WORDS[1]


def machine_text(sentences: Sequence[Cited]) -> str:
    """The Markdown of a section that the service wrote: one item a sentence."""
    return "\n".join(f"- {sentence.text}" for sentence in sentences)


def machine_sections(before: Persona | None, made: Sequence[PersonaSection]) -> tuple[PersonaSection, ...]:
    """The sections of a persona after the service wrote `made`: what the user protects stays as it is.

    The service's own sections come first, in their order; a section of it that says nothing is left out.
    """
    kept = {one.id: one for one in (before.sections if before else ()) if one.protected}
    ours = {one.id: one for one in made if one.sentences and one.id not in kept}
    own = [section.value for section in Section]
    named = [*own, *(id for id in kept if id not in own)]
    return tuple(kept.get(id) or ours[id] for id in named if id in kept or id in ours)


def edited_sections(before: Persona | None, edits: Sequence[PersonaSection]) -> tuple[PersonaSection, ...]:
    """The sections after a user's edits; a section that is given back is the service's to write anew."""
    sections = {one.id: one for one in (before.sections if before else ())}
    for edit in edits:
        if edit.protected:
            sections[edit.id] = edit
        elif edit.id in sections and sections[edit.id].protected:
            del sections[edit.id]
    own = [section.value for section in Section]
    named = [*own, *(id for id in sections if id not in own)]
    return tuple(sections[id] for id in named if id in sections)
