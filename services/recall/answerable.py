"""Answerable: how much of what a question asks is in what was found, 0 to 1; no probability."""

from collections.abc import Callable, Collection, Sequence

from services.domain.ids import EntityId

TOP = 3
"""The first items are what an answer would be drawn from."""
TOLD_OTHERWISE = 0.5
"""How sure an answer is that has not one of the question's words: it may be told in others."""
STRANGER_SHARE = 0.5
"""What is left when nothing found is about anybody whom the question names: it is another's story."""


def answerable(
    asked: Sequence[str],
    telling: Callable[[str], float],
    found: Sequence[Collection[str]],
    named: Collection[EntityId],
    about: Collection[EntityId],
    names: Sequence[Collection[str]] = (),
    whose: float = 1.0,
) -> float:
    """By the share of the question's telling words (by idf) that the first items together have, and by
    `whose` story it is (services/recall/whose.py).

    `found`: the words of each item, best first. `named`: entities in the question; `names`: the words of
    each one's names; `about`: the entities that the items are about. Without words to compare, whether
    there is anything at all.
    """
    if not found:
        return 0.0
    words = set(asked)
    total = sum(telling(word) for word in sorted(words))
    have = {word for item in found[:TOP] for word in item}
    share = sum(telling(word) for word in sorted(words & have)) / total if total else 0.5
    if named and not (set(named) & set(about)) and not any(set(each) <= have for each in names if each):
        share *= STRANGER_SHARE
    return min(1.0, TOLD_OTHERWISE + (1 - TOLD_OTHERWISE) * share) * whose
