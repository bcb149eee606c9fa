"""Mentions: where a text names somebody who is to be forgotten, and the text without the name."""

import re
from collections.abc import Iterable
from functools import cached_property

from services.domain.names import name_key

FILL = "\u2588"
"""Stands for each character that was taken out, so that places in a text stay what they are."""
_WIDE = 0x2E80
"""From here on scripts write words without spaces between them."""
_TELLS_NOBODY = frozenset(
    {"i", "me", "my", "mine", "we", "us", "our", "you", "your", "he", "him", "his", "she", "her", "it", "its"}
    | {"they", "them", "user", "speaker", "assistant", "somebody", "someone"}
    | {"the user", "the speaker", "the assistant", "我", "我们", "你", "他", "她", "它", "用户"}
)


def tells_somebody(key: str) -> bool:
    """False for keys by which no text can be said to name one: pronouns, roles, single letters."""
    return key not in _TELLS_NOBODY and (len(key) > 1 or (key != "" and ord(key) >= _WIDE))


class Mentions:
    """Finds names as whole words, whatever case, spaces and look-alikes they are written with.

    `names` are keys of theirs; `others` keys of longer names which have one of these in them and are no
    mention: with the name "alice", "alice springs" is none when it is given there.
    """

    def __init__(self, names: Iterable[str], others: Iterable[str] = ()) -> None:
        self._names = sorted({key for key in names if tells_somebody(key)}, key=_longest)
        self._others = sorted(set(others) - {""}, key=_longest)

    def __bool__(self) -> bool:
        return bool(self._names)

    def named_in(self, text: str) -> bool:
        """Whether the text names them."""
        return bool(self) and any(found["name"] for found in self._in_keys.finditer(name_key(text)))

    def without(self, text: str) -> str:
        """The text of the same length with FILL in place of the names; all of it where they can't be told."""
        if not self.named_in(text):
            return text
        left = self._in_texts.sub(lambda found: _filled(found[0]) if found["name"] else found[0], text)
        return _filled(left) if self.named_in(left) else left

    @cached_property
    def _in_keys(self) -> re.Pattern[str]:
        return re.compile(_either(map(_whole, self._others), map(_whole, self._names)))

    @cached_property
    def _in_texts(self) -> re.Pattern[str]:
        return re.compile(_either(map(_loose, self._others), map(_loose, self._names)), re.IGNORECASE)


def named_after(key: str, names: Iterable[str]) -> bool:
    """Whether a name can't be told without one of these: "maya's dog", "the maya kapoor prize"."""
    return any(
        Mentions([name]).named_in(key) and (" " in name or f"{name}'s" in key or f"{name}的" in key)
        for name in names
    )


def _longest(key: str) -> tuple[int, str]:
    return -len(key), key


def _either(others: Iterable[str], names: Iterable[str]) -> str:
    # Of two that begin at one place the longer one is meant.
    return f"(?P<other>{'|'.join(others) or '(?!)'})|(?P<name>{'|'.join(names) or '(?!)'})"


def _whole(key: str) -> str:
    return _bounded(key, re.escape(key))


def _loose(key: str) -> str:
    return _bounded(key, r"[\s_]+".join(map(re.escape, key.split())))


def _bounded(key: str, pattern: str) -> str:
    left = r"(?<!\w)" if _spaced(key[0]) else ""
    right = r"(?!\w)" if _spaced(key[-1]) else ""
    return f"{left}{pattern}{right}"


def _spaced(character: str) -> bool:
    return character.isalnum() and ord(character) < _WIDE


def _filled(text: str) -> str:
    return re.sub(r"\S", FILL, text)
