"""Mentions: the entities that a question names, by the graph's alias table, longest match first."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId
from services.domain.names import name_key
from services.domain.near_keys import is_near_key
from services.recall.stopwords import CHINESE, ENGLISH
from services.recall.terms import CJK
from services.stores.graph.port import Alias

MAX_MENTIONS = 16
_READ_CHARACTERS = 4_000
"""A longer question is read no further for names; search still sees all of it."""
_MODALS = frozenset({"may", "might", "must"})
_CJK = re.compile(f"[{CJK}]")
_FIRST_PERSON = re.compile(r"(?<![\w'])(?:i|i'm|i've|i'd|i'll|me|my|mine|myself)(?!\w)|我")
_SECOND_PERSON = re.compile(r"(?<![\w'])(?:you|you've|you'd|your|yours)(?!\w)|[你您]")
_ASKED_OF_MEMORY = re.compile(
    r"\b(?:do|can|could|would|will) you (?:still |please )*(?:remember|recall|know|tell|remind)\b"
    r"|[你您](?:还|能|可以|是否)*(?:记得|记不记得|知道|告诉|想起|提醒)"
)
"""Said to whom is asked, not of them."""


@dataclass(frozen=True, slots=True)
class Named:
    """An entity as the alias table knows it, by one of its keys."""

    id: EntityId
    name: str
    type: EntityType
    key: str

    @property
    def entity(self) -> Entity:
        return Entity(self.id, self.name, self.key, self.type)


@dataclass(frozen=True, slots=True)
class Mention:
    """Entities that one stretch of the question may mean; several when their names are the same."""

    text: str
    entities: tuple[Named, ...]


class AliasTable:
    """Every key of a graph's entities. Read-only; made anew for another revision."""

    def __init__(self, aliases: Iterable[Alias]) -> None:
        self._by_key: dict[str, list[Named]] = {}
        self.predicates: list[Named] = []
        self.nodes: list[Named] = []
        for alias in aliases:
            named = Named(alias.entity, alias.name, alias.type, alias.key)
            if alias.type is EntityType.PREDICATE:
                self.predicates.append(named)
            elif alias.key and not is_near_key(alias.key):
                self.nodes.append(named)
                self._by_key.setdefault(alias.key, []).append(named)
        self._longest = max(map(len, self._by_key), default=0)
        self._begin = {_first_piece(key) for key in self._by_key}

    def __len__(self) -> int:
        return len(self.nodes) + len(self.predicates)

    def find(self, key: str) -> tuple[Named, ...]:
        """Entities by a normalised name, predicates left out."""
        return tuple(self._by_key.get(key, ()))

    def mentions(self, question: str) -> list[Mention]:
        """What the question names, in order, without overlaps."""
        original = question[:_READ_CHARACTERS]
        text = name_key(original)
        borders = list(_borders(text))
        found: list[Mention] = []
        position = 0
        for at, start in enumerate(borders[:-1]):
            if (
                start < position
                or len(found) == MAX_MENTIONS
                or text[start : borders[at + 1]] not in self._begin
            ):
                continue
            for end in reversed(borders[at + 1 : at + 2 + self._longest]):
                if end - start <= self._longest and self._names(text[start:end], original):
                    found.append(Mention(text[start:end], self.find(text[start:end])))
                    position = end
                    break
        return found

    def _names(self, key: str, original: str) -> bool:
        named = self._by_key.get(key)
        if not named:
            return False
        if key in ENGLISH or key in _MODALS or (len(key) == 1 and (key in CHINESE or key.isascii())):
            # "IT" and "May" are names only as they are written.
            return any(one.name != key and one.name in original for one in named)
        return True


def speaks_of_self(question: str) -> bool:
    """True when the question says I, me, my or 我: it means the graph's user."""
    return bool(_FIRST_PERSON.search(name_key(question[:_READ_CHARACTERS])))


def speaks_of_assistant(question: str) -> bool:
    """True when the question says you, your or 你: it means an assistant, unless it only asks them."""
    return bool(_SECOND_PERSON.search(_ASKED_OF_MEMORY.sub(" ", name_key(question[:_READ_CHARACTERS]))))


def _first_piece(key: str) -> str:
    """A name up to where it may end first; that of a question at the same place is the same."""
    first, then = islice(_borders(key), 2)
    return key[first:then]


def _borders(text: str) -> Iterator[int]:
    """Where a name may begin or end: not between two letters or digits, but around each CJK character."""
    joins = [character.isalnum() for character in text]
    if not text.isascii():
        joins = [each and not _CJK.match(character) for each, character in zip(joins, text, strict=True)]
    before = False
    for at, joined in enumerate(joins):
        if not (at and before and joined):
            yield at
        before = joined
    yield len(text)
