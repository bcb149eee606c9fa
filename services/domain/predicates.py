"""Predicates: one spelling for each, its aliases and inverse, and whether it takes one object at a time."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files

from services.domain.ids import RecordId, Revision
from services.domain.inflections import inflections

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLURAL = re.compile(r"[^siu]s$")
_NOT_WORD = re.compile(r"[\W_]+")


class Cardinality(StrEnum):
    """How many objects a subject can have at one time. SINGLE: the statements of a slot compete."""

    SINGLE = "single"
    MULTI = "multi"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a tenant says of a predicate. `inverse` is the canonical form read from object to subject."""

    name: str
    cardinality: Cardinality = Cardinality.MULTI
    aliases: tuple[str, ...] = ()
    inverse: str | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration as a record: counts from `recorded_at` until a later one of the name revokes it."""

    id: RecordId
    declaration: Declaration
    recorded_at: Revision = Revision(0)
    revoked_at: Revision | None = None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Canonical forms by alias, cardinalities and inverses, all in the spelling of `spelling`."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    cardinalities: Mapping[str, Cardinality] = field(default_factory=dict)
    inverses: Mapping[str, str] = field(default_factory=dict)
    single_words: frozenset[str] = frozenset()
    """First words that say "the one", as in primary_database."""
    turned: frozenset[str] = frozenset()
    """Names that are recorded by their inverse, from object to subject: each pair in one direction."""
    forms: Mapping[str, str] = field(default_factory=dict)
    """Canonical forms by inflections of names and aliases (services/domain/inflections.py)."""

    @property
    def names(self) -> set[str]:
        """Every name that is known, canonical or not; other forms of its verb left out."""
        return {*self.aliases, *self.aliases.values(), *self.cardinalities, *self.inverses}

    def canonical(self, name: str) -> str:
        """The canonical form of any spelling or alias. Raises ValueError when no word is in it."""
        spelt = spelling(name)
        return self.aliases.get(spelt) or self.forms.get(spelt, spelt)

    def cardinality(self, name: str) -> Cardinality:
        """Of a predicate in any spelling. An unknown one is MULTI, unless its first word says "the one"."""
        canonical = self.canonical(name)
        if canonical in self.cardinalities:
            return self.cardinalities[canonical]
        unique = canonical.split("_")[0] in self.single_words and not _PLURAL.search(canonical)
        return Cardinality.SINGLE if unique else Cardinality.MULTI

    def inverse(self, name: str) -> str | None:
        """The canonical form that says the same from object to subject (itself when symmetric), if known."""
        return self.inverses.get(self.canonical(name))

    def declaring(self, declarations: Iterable[Declaration]) -> "Vocabulary":
        """The vocabulary with declarations on top; a later one wins over an earlier one and over defaults.

        A declared name is canonical even where it was an alias before.
        """
        aliases, cardinalities = dict(self.aliases), dict(self.cardinalities)
        inverses = dict(self.inverses)
        named: set[str] = set()
        for declared in declarations:
            name = spelling(declared.name)
            aliases.pop(name, None)
            cardinalities[name] = declared.cardinality
            named.add(name)
            for alias in map(spelling, declared.aliases):
                if alias != name:
                    aliases[alias] = name
                    named.add(alias)
            if declared.inverse is not None:
                inverse = spelling(declared.inverse)
                for one in (name, inverse):
                    inverses.pop(inverses.pop(one, one), None)
                inverses[name], inverses[inverse] = inverse, name
        flat = _flat(aliases)
        return replace(
            self,
            aliases=flat,
            cardinalities=cardinalities,
            inverses={flat.get(one, one): flat.get(other, other) for one, other in inverses.items()},
            forms=_forms(named, flat, self.forms, cardinalities.keys() | inverses.keys()),
        )


def spelling(name: str) -> str:
    """A predicate's name in snake_case: "Works at", "works-at", "worksAt" are works_at; CJK stays.

    Raises ValueError when nothing of a word is left.
    """
    words = _CAMEL.sub("_", unicodedata.normalize("NFKC", name))
    spelt = _NOT_WORD.sub("_", unicodedata.normalize("NFKC", words.casefold())).strip("_")
    if not spelt:
        raise ValueError("a predicate needs a word")
    return spelt


@cache
def default_vocabulary() -> Vocabulary:
    """The vocabulary that ships with the product (services/domain/predicates.toml)."""
    text = (files("services.domain") / "predicates.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    aliases = {alias: name for name, others in data["aliases"].items() for alias in others}
    inverses: dict[str, str] = {}
    for one, other in data["inverses"]:
        inverses[one], inverses[other] = other, one
    single = dict.fromkeys(data["single"], Cardinality.SINGLE)
    # Of two names that say the same, the one that takes one object at a time: there its slot is read at once.
    turned = {one if one not in single and other in single else other for one, other in data["inverses"]}
    turned -= {one for one, other in data["inverses"] if one == other}
    names = {*aliases, *aliases.values(), *single, *inverses}
    return Vocabulary(
        aliases,
        single,
        inverses,
        frozenset(data["single_words"]),
        frozenset(turned),
        _forms(names, aliases, {}, ()),
    )


def _forms(
    names: Set[str], aliases: Mapping[str, str], known: Mapping[str, str], own: Iterable[str]
) -> dict[str, str]:
    """Canonical forms by inflections of `names`; an inflection of several forms is none's.

    What is known of other names stays, as the aliases have them now. No name of its own is a form.
    """
    found: dict[str, set[str]] = {}
    taken = {*names, *aliases, *own}
    for name in names:
        for form in inflections(name):
            found.setdefault(form, set()).add(aliases.get(name, name))
    kept = {form: aliases.get(name, name) for form, name in known.items()}
    made = kept | {form: forms.pop() for form, forms in found.items() if len(forms) == 1}
    return {form: name for form, name in made.items() if form not in taken and form != name}


def _flat(aliases: Mapping[str, str]) -> dict[str, str]:
    """Aliases of what has itself become an alias point at the last form; a circle is left where it is cut."""
    flat: dict[str, str] = {}
    for alias in aliases:
        seen, name = {alias}, aliases[alias]
        while name in aliases and name not in seen:
            seen.add(name)
            name = aliases[name]
        flat[alias] = name
    return {alias: name for alias, name in flat.items() if alias != name}
