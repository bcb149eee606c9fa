"""Vids: a scope's key, a letter for the kind, and an id of our own alphabet; at most 64 bytes, no user text.

A vid tells its id (`id_of`), except those of keys and pairs, which are digests. An id outside the alphabet
names nothing that could have been stored: reads leave it out, writes refuse it.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NewType, TypeVar

from services.domain.scope import Scope

Vid = NewType("Vid", str)
I = TypeVar("I", bound=str)  # noqa: E741

VID_BYTES = 64
_SCOPE_DIGITS = 16
_ID_LETTERS = VID_BYTES - _SCOPE_DIGITS - 1
_ID = re.compile(rf"[0-9A-Za-z_-]{{1,{_ID_LETTERS}}}\Z")
_VID = re.compile(rf"[0-9a-f]{{{_SCOPE_DIGITS}}}[A-Za-z][0-9A-Za-z_-]{{0,{_ID_LETTERS}}}\Z")


class Kind(Enum):
    """What a vid stands for."""

    ROOT = "g"
    STATEMENTS = "S"
    THINGS = "E"
    PREDICATES = "P"
    """Shelves: of statements, of entities but predicates, and of predicates."""
    ENTITY = "e"
    STATEMENT = "s"
    EPISODE = "p"
    RECORD = "r"
    KEY = "k"
    SLOT = "w"
    """A subject with a predicate."""
    BETWEEN = "b"
    """A subject with an object."""


def is_id(text: str) -> bool:
    """Whether a text can be the id in a vid."""
    return _ID.match(text) is not None


def known(ids: Iterable[I]) -> list[I]:
    """The distinct ids that a vid can hold, in their order."""
    return [id for id in dict.fromkeys(ids) if is_id(id)]


def vid(scope: Scope, kind: Kind, id: str) -> Vid:
    """Raises ValueError for an id that is not of our alphabet."""
    if not is_id(id):
        raise ValueError(f"not an id: {len(id)} characters for a vid of kind {kind.name}")
    return Vid(f"{scope.key}{kind.value}{id}")


def vids(scope: Scope, kind: Kind, ids: Iterable[str]) -> list[Vid]:
    """Vids of the distinct ids that can have one."""
    return [vid(scope, kind, id) for id in known(ids)]


def root(scope: Scope) -> Vid:
    """Where a scope's shelves hang."""
    return Vid(f"{scope.key}{Kind.ROOT.value}")


def shelf(scope: Scope, kind: Kind, number: int) -> Vid:
    """A shelf by its number."""
    return vid(scope, kind, f"{number:016x}")


def shelf_number(shelf: str) -> int:
    return int(id_of(shelf), 16)


def key(scope: Scope, text: str) -> Vid:
    """Of an alias's key, which may be any text."""
    return _digest(scope, Kind.KEY, text)


def pair(scope: Scope, kind: Kind, subject: str, other: str) -> Vid:
    """Of a subject with a predicate (SLOT) or an object (BETWEEN)."""
    return _digest(scope, kind, f"{subject} {other}")


def id_of(vid: str) -> str:
    """The id that a vid holds."""
    return vid[_SCOPE_DIGITS + 1 :]


def kind_of(vid: str) -> Kind:
    return Kind(vid[_SCOPE_DIGITS])


def place_of(id: str) -> int:
    """The rank that tells edges between the same two ends apart: 63 bits that follow from an id."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:8]) >> 1


def literal(vid: str) -> str:
    """A vid in a sentence. Raises ValueError for anything else: no other text may come there."""
    if _VID.match(vid) is None:
        raise ValueError("not a vid")
    return f'"{vid}"'


def literals(vids: Sequence[str]) -> str:
    return ", ".join(map(literal, vids))


def _digest(scope: Scope, kind: Kind, text: str) -> Vid:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return vid(scope, kind, digest[:_ID_LETTERS])
