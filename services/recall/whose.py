"""Whose: is it the story of whom the question names, or does it belong to somebody else?"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from services.recall.bm25 import Bm25, Scores
from services.recall.turns import Mask, Turns

Hits = Sequence[tuple[str, float]]


def whose(
    index: Bm25,
    turns: Turns,
    speakers: Collection[str],
    terms: Sequence[str],
    near: Hits,
    visible: Iterable[str],
) -> float:
    """0 to 1: by how much turns about the named speakers lead those about others; 0.5 when they are even.

    A lead is the difference of the best of each: in the share of the question's telling words (by idf) that
    are said there or near, plus in likeness, scaled from the least of `near` to its best. A question about
    somebody else's doings finds those, but not with whom it names. 1 where no speaker is named, or all are:
    then the story is nobody else's. Only `visible` passages count.
    """
    if not speakers:
        return 1.0
    mine, others = turns.about(speakers)
    places = index.places(list(visible))
    seen = np.zeros(len(index), dtype=np.bool_)
    seen[places[places >= 0]] = True
    mine, others = mine & seen, others & seen
    if not others.any():
        return 1.0
    if not mine.any():
        return 0.0
    words = turns.windowed(index, terms)
    telling = sum(index.idf(term) for term in sorted(set(terms)))
    lead = _lead(words / telling, mine, others) if telling else 0.0
    return min(1.0, max(0.0, 0.5 + (lead + _lead(_likeness(index, near), mine, others)) / 2))


def _lead(scores: Scores, mine: Mask, others: Mask) -> float:
    return float(scores[mine].max() - scores[others].max())


def _likeness(index: Bm25, near: Hits) -> Scores:
    scores = np.zeros(len(index))
    if not near:
        return scores
    least, most = near[-1][1], near[0][1]
    for id, score in near:
        place = index.place(id)
        if place is not None and most > least:
            scores[place] = (score - least) / (most - least)
    return scores
