"""Synonyms: what can be said of two predicates by their names alone, in English and Chinese."""

import re

_PRESENT = frozenset({"currently", "now", "presently", "still", "also", "a", "an", "the"})
"""Words that leave a predicate what it is: the time is in a statement's spans."""
_CHINESE_PRESENT = re.compile(r"^(目前|现在|当前|正在|仍然|依然|仍)(?=..)")

_TURNING = frozenset({
    "not", "no", "never", "without", "stopped", "stops", "quit", "quits", "ceased", "former",
    "formerly", "ex", "previously", "used", "longer", "past", "plans", "planned", "planning",
    "wants", "wanted", "hopes", "hoped", "will", "would", "may", "might", "could", "should",
    "almost", "nearly", "refuses", "refused", "dont", "doesnt", "didnt", "isnt", "wasnt", "cannot",
    "cant", "wont", "t",
})  # fmt: skip
"""Words by which a predicate says that it is over, not so, or not yet."""
_CHINESE_TURNING = frozenset("不没未非勿别曾前停想将拟")
_NUMBER = re.compile(r"\d+")


def plain(name: str) -> str:
    """A predicate's spelling without words for the present and articles: "still_works_at", "目前就职于"."""
    words = [word for word in name.split("_") if word not in _PRESENT]
    return _CHINESE_PRESENT.sub("", "_".join(words)) or name


def unlike(one: str, other: str) -> bool:
    """Whether no model may join two spellings: one is over, not so or not yet, or names another number."""
    return _turning(one) != _turning(other) or _NUMBER.findall(one) != _NUMBER.findall(other)


def _turning(name: str) -> frozenset[str]:
    return frozenset(name.split("_")) & _TURNING | frozenset(name) & _CHINESE_TURNING
