"""The words the rules know, read once from lexicon.toml."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from services.domain.graph import EntityType


@dataclass(frozen=True, slots=True)
class Frame:
    """What a verb with its preposition says: a predicate, and the types of its two ends."""

    predicate: str
    subject: EntityType = EntityType.UNKNOWN
    object: EntityType = EntityType.UNKNOWN


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Tables by "lemma" or "lemma preposition", and word lists."""

    states: dict[str, Frame]
    beginnings: dict[str, Frame]
    endings: dict[str, Frame]
    changes: dict[str, str]
    events: dict[str, Frame]
    adjectives: dict[str, Frame]
    words: dict[str, frozenset[str]]
    technologies: frozenset[str]

    def is_technology(self, name: str) -> bool:
        """True for a known technology, with or without its version."""
        words = name.lower().split()
        return bool(words) and (words[0] in self.technologies or words[-1] in self.technologies)

    def tells_state(self, lemma: str) -> bool:
        """True for a verb of the states, whatever preposition it stands with."""
        return any(key.split(" ", 1)[0] == lemma for key in self.states)


@cache
def lexicon() -> Lexicon:
    """The shipped lexicon. Raises KeyError or ValueError when its file is not well formed."""
    table = tomllib.loads(files(__package__).joinpath("lexicon.toml").read_text("utf-8"))
    return Lexicon(
        states=_frames(table["states"]),
        beginnings=_frames(table["beginnings"]),
        endings=_frames(table["endings"]),
        changes=dict(table["changes"]),
        events=_frames(table["events"]),
        adjectives=_frames(table["adjectives"]),
        words={name: frozenset(words.split()) for name, words in table["words"].items()},
        technologies=frozenset(table["technologies"]["names"].split()),
    )


def _frames(table: dict[str, str]) -> dict[str, Frame]:
    return {key: _frame(value) for key, value in table.items()}


def _frame(value: str) -> Frame:
    predicate, *types = value.split()
    subject, object_type = (
        EntityType.UNKNOWN if name == "-" else EntityType(name) for name in [*types, "-", "-"][:2]
    )
    return Frame(predicate, subject, object_type)


def third_person(lemma: str) -> str:
    """The present form that predicates take: `maintain` is `maintains`."""
    irregular = {"be": "is", "have": "has", "do": "does", "go": "goes"}
    if lemma in irregular:
        return irregular[lemma]
    if lemma.endswith(("s", "sh", "ch", "x", "z")):
        return lemma + "es"
    if lemma.endswith("y") and lemma[-2:-1] not in set("aeiou"):
        return lemma[:-1] + "ies"
    return lemma + "s"
