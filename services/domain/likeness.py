"""Likeness: whether two names may be one entity's, by their form alone: it finds and excludes, never joins.

Names are compared in a form without accents and in one Chinese script (scripts.py), word by word.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files

from rapidfuzz.distance import OSA

from services.domain.graph import EntityType
from services.domain.names import compatible, name_key
from services.domain.scripts import is_cjk, plain

_WORD = re.compile(r"[^\W_]+[+#]*")
_DIGITS = re.compile(r"\d+(?:\.\d+)*")
_APOSTROPHE = re.compile(r"(?<=\w)['.](?=\w)")
_INTRODUCED = r"(?:(?:short for|aka|a\.k\.a\.|also|or|简称|全称|即)[\s:,]*)?"
_DOTTED = re.compile(r"(?<![^\W\d_])(?:[^\W\d_]\.){2,}")
LONG_WORD = 8
"""Letters of a word from which a single wrong one is rather a slip than another name."""


@dataclass(frozen=True, slots=True)
class _Lists:
    """Words that don't tell one name from another (services/domain/likeness.toml)."""

    small_words: frozenset[str]
    titles: frozenset[str]
    forms: frozenset[str]
    cjk_forms: tuple[str, ...]


@cache
def _lists() -> _Lists:
    table = tomllib.loads((files("services.domain") / "likeness.toml").read_text(encoding="utf-8"))
    words = {name: text.split() for name, text in table.items()}
    return _Lists(
        frozenset(words["small_words"]),
        frozenset(words["titles"]),
        frozenset(words["forms"]),
        tuple(words["cjk_forms"]),
    )


class Likeness(StrEnum):
    """In which way two names may be one entity's."""

    SPELLING = "spelling"  # accents, order, punctuation, simplified or traditional characters
    INITIALS = "initials"  # Maya K., Maya Kapoor
    ACRONYM = "acronym"  # IBM, International Business Machines; 北大, 北京大学
    PART = "part"  # Maya, Maya Kapoor; Acme, Acme Inc.
    SLIP = "slip"  # Kubernetes, Kubernets


@dataclass(frozen=True)
class Name:
    """A name as it is compared."""

    text: str
    type: EntityType

    @cached_property
    def key(self) -> str:
        return name_key(self.text)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words in plain letters, those of scripts without spaces apart from the others, no titles."""
        text = _APOSTROPHE.sub(
            "", _DOTTED.sub(lambda dotted: dotted.group().replace(".", "") + " ", self.plain)
        )
        words = [word for found in _WORD.findall(text) for word in _by_script(found)]
        return tuple(word for word in words if word not in _lists().titles) or tuple(words)

    @cached_property
    def plain(self) -> str:
        return plain(self.key)

    @cached_property
    def numbers(self) -> Counter[str]:
        return Counter(_DIGITS.findall(self.plain))

    @cached_property
    def joined(self) -> str:
        return "".join(self.words)

    @cached_property
    def is_cjk(self) -> bool:
        return bool(self.joined) and all(map(is_cjk, self.joined))

    @cached_property
    def acronyms(self) -> frozenset[str]:
        """What it is shortened to by the first letters of its words; in Chinese, of every two characters."""
        if self.is_cjk and len(self.words) == 1:
            initials = self.joined[::2]
            return frozenset({initials}) if len(self.joined) >= 4 else frozenset()
        if len(self.words) < 2 or any(map(is_cjk, self.joined)):
            return frozenset()
        bare = self.without_form or self.words
        large = [word for word in bare if word not in _lists().small_words]
        found = {"".join(word[0] for word in some) for some in (bare, large)}
        return frozenset(each for each in found if len(each) >= 2 and each.isalpha())

    @cached_property
    def without_form(self) -> tuple[str, ...]:
        """Its words without what says what kind of company or place it is; none where nothing is left out."""
        if self.type is EntityType.PERSON:
            return ()
        if self.is_cjk and len(self.words) == 1:
            bare = next(
                (self.joined.removesuffix(form) for form in _lists().cjk_forms if self.joined.endswith(form)),
                "",
            )
            return (bare,) if len(bare) >= 2 else ()
        bare_words = tuple(word for word in self.words if word not in _lists().forms)
        return bare_words if len(bare_words) < len(self.words) else ()

    @cached_property
    def may_be_person(self) -> bool:
        return self.type in (EntityType.PERSON, EntityType.UNKNOWN)


def likeness(one: Name, other: Name) -> Likeness | None:
    """How two names of compatible types are alike, if they are."""
    if not compatible(one.type, other.type) or _told_apart(one, other):
        return None
    if one.joined == other.joined or sorted(one.words) == sorted(other.words):
        return Likeness.SPELLING
    short, full = sorted((one, other), key=lambda name: len(name.joined))
    if _is_acronym(short, full):
        return Likeness.ACRONYM
    if one.may_be_person and other.may_be_person and _initials_agree(one.words, other.words):
        return Likeness.INITIALS
    if _is_part(short, full):
        return Likeness.PART
    return Likeness.SLIP if _is_slip(one, other) else None


def apart(one: Name, other: Name) -> bool:
    """Whether the form alone says that two names are two entities': nobody need be asked.

    Names that differ in a number or a sign. Names that share words and each have another (iPhone case,
    iPhone charger), or of which one has more words and is neither shortened nor a person's. Short words that
    differ by a letter or two (Müller, Möller). Persons of one script whose names have nothing in common.
    """
    if not compatible(one.type, other.type) or _told_apart(one, other):
        return True
    if fits(one, other):
        return False
    if _shared(one, other) or _differ_by_letters(one, other):
        return True
    return one.type is other.type is EntityType.PERSON and one.is_cjk == other.is_cjk


def fits(one: Name, other: Name) -> bool:
    """Whether both may be names of whoever has a third one: alike, or initials of each other's words."""
    if likeness(one, other) is not None:
        return True
    persons = one.may_be_person and other.may_be_person
    return persons and not _told_apart(one, other) and _initials_fit(one.words, other.words)


def fuller(one: Name, other: Name) -> bool:
    """Whether `one` is the fuller name of the two, by content alone: more letters, then more of a text."""
    return _fullness(one) > _fullness(other)


def spelled_out(text: str, one: Name, other: Name) -> bool:
    """Whether a text gives one of two names that are alike in brackets after the other."""
    if likeness(one, other) is None:
        return False
    said = name_key(text)
    return _in_brackets(said, one.key, other.key) or _in_brackets(said, other.key, one.key)


def named_in(text: str, name: Name) -> bool:
    """Whether a text holds the name, whole."""
    return re.search(_whole(name.key), name_key(text)) is not None


def _in_brackets(said: str, first: str, second: str) -> bool:
    inside = rf"[(\[]\s*{_INTRODUCED}[\"']?{_whole(second)}[\"']?\s*[)\],;]"
    return re.search(rf"{_whole(first)}[\"']?\s*{inside}", said) is not None


def _whole(key: str) -> str:
    before = "" if not key[:1].isalnum() or is_cjk(key[0]) else r"(?<![^\W_])"
    after = "" if not key[-1:].isalnum() or is_cjk(key[-1]) else r"(?![^\W_])"
    return f"{before}{re.escape(key)}{after}"


def _by_script(word: str) -> list[str]:
    """Runs of scripts without spaces, and of the others."""
    runs: list[str] = []
    for at, each in enumerate(word):
        if at and is_cjk(each) == is_cjk(word[at - 1]):
            runs[-1] += each
        else:
            runs.append(each)
    return runs


def _told_apart(one: Name, other: Name) -> bool:
    signs = [Counter(each for each in name.plain if each in "+#&@$%") for name in (one, other)]
    return one.numbers != other.numbers or signs[0] != signs[1] or not (one.joined and other.joined)


def _is_acronym(short: Name, full: Name) -> bool:
    if short.joined not in full.acronyms or len(short.words) != 1:
        return False
    if len(short.joined) > 2 or short.is_cjk:
        return True
    return short.text.upper() == short.text  # "us" is a word, "US" is not


def _initials_agree(one: Sequence[str], other: Sequence[str]) -> bool:
    """Words or initials fit; one of them is an initial, and one is equal and a word."""
    equal = any(a == b and len(a) > 1 for a, b in _aligned(one, other))
    return one != other and equal and _initials_fit(one, other)


def _initials_fit(one: Sequence[str], other: Sequence[str]) -> bool:
    """First and last words are equal, or one is the other's initial; of equally many words, all are."""
    if min(len(one), len(other)) < 2 or any(map(is_cjk, "".join((*one, *other)))):
        return False
    return all(
        a == b or (a[0] == b[0] and a[0].isalpha() and 1 in (len(a), len(b))) for a, b in _aligned(one, other)
    )


def _aligned(one: Sequence[str], other: Sequence[str]) -> list[tuple[str, str]]:
    if len(one) == len(other):
        return list(zip(one, other, strict=True))
    return [(one[0], other[0]), (one[-1], other[-1])] if one and other else []


def _is_part(short: Name, full: Name) -> bool:
    """A person's name without some of its words; another's without the form of its company or place."""
    missing = Counter(full.words) - Counter(short.words)
    if Counter(short.words) - Counter(full.words):
        return _is_part_in_chinese(short, full)
    if _names_person(short, full):
        return len(short.joined) > 1 and short.words[0] == full.words[0]
    return all(word in _lists().forms for word in missing)


def _is_part_in_chinese(short: Name, full: Name) -> bool:
    rest = full.joined.removeprefix(short.joined)
    return len(short.joined) >= 2 and rest != full.joined and rest in _lists().cjk_forms


def _names_person(one: Name, other: Name) -> bool:
    """Whether a person is named: by both types, or by one while the other isn't known."""
    return one.may_be_person and other.may_be_person and EntityType.PERSON in (one.type, other.type)


def _is_slip(one: Name, other: Name) -> bool:
    if EntityType.PERSON in (one.type, other.type) or len(one.words) != len(other.words):
        return False
    different = [pair for pair in zip(one.words, other.words, strict=True) if pair[0] != pair[1]]
    if len(different) != 1 or min(map(len, different[0])) < LONG_WORD:
        return False
    return OSA.distance(*different[0]) == 1 and different[0][0][0] == different[0][1][0]


def _shared(one: Name, other: Name) -> bool:
    """Whether two names have a word in common; of scripts without spaces, a character."""
    common = set(one.words) & set(other.words)
    characters = {each for each in one.joined if is_cjk(each)} & {
        each for each in other.joined if is_cjk(each)
    }
    return bool(common - _lists().small_words or characters)


def _differ_by_letters(one: Name, other: Name) -> bool:
    if len(one.words) > 1 or len(other.words) > 1 or one.joined[:LONG_WORD] == other.joined[:LONG_WORD]:
        return False
    short = min(len(one.joined), len(other.joined)) <= LONG_WORD
    return short and OSA.distance(one.joined, other.joined) <= 2


def _fullness(name: Name) -> tuple[int, int, str]:
    return len(name.joined), len(name.key), name.key
