"""Fuse: one score from what the legs found: a weighted sum of scores, each scaled by its leg's best.

Scores of one leg compare only among themselves, so each is scaled to 0..1 first. Summing them beats
equal-weight reciprocal rank fusion, which forgets by how much the first is better than the second.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

WEIGHTS: Mapping[str, float] = {
    "statements_dense": 1.0,
    "statements_lexical": 1.0,
    "walk": 0.6,
    "time": 0.4,
    "passages_dense": 1.0,
    "passages_lexical": 1.0,
    "passages_time": 0.4,
    "voice_dense": 1.0,
    "voice_lexical": 1.0,
}
"""What a leg's best hit adds. A walk says that a fact is near, not that it answers: the words decide."""

SAME = 9
"""Scores that agree to this many decimals are equal, and the tie-breakers decide."""


@dataclass(frozen=True, slots=True)
class Leg:
    """What one search found: ids with the search's own scores, best first. 0 means nothing in common."""

    name: str
    hits: Sequence[tuple[str, float]]


def best_first(hits: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Hits by score, equal ones by id."""
    return [(id, -score) for score, id in sorted([(-score, id) for id, score in hits])]


class Found(NamedTuple):
    """A leg that has an item: at which rank (from 1), with which score of its own."""

    leg: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Fused:
    """An item with its score, 0 to 1, and who found it."""

    id: str
    score: float
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Fusion:
    """Fused scores of all that was found, 0 to 1, and the legs that they are of, without what is hidden."""

    scores: Mapping[str, float]
    legs: Sequence[Leg]

    def items(self, ids: Iterable[str], scores: Mapping[str, float]) -> list[Fused]:
        """Some items under the scores that they came to. Who found them is told of these alone."""
        legs = [
            (leg.name, {id: rank for rank, (id, _) in enumerate(leg.hits)}, leg.hits) for leg in self.legs
        ]
        return [
            Fused(
                id,
                scores[id],
                tuple(
                    Found(name, ranks[id] + 1, hits[ranks[id]][1])
                    for name, ranks, hits in legs
                    if id in ranks
                ),
            )
            for id in ids
        ]


def fuse(legs: Sequence[Leg], visible: Container[str]) -> Fusion:
    """Fuses the visible hits. What is not visible sways no score of what is."""
    total = sum(WEIGHTS[leg.name] for leg in legs)
    # Sums of floats depend on their order.
    shown = [
        Leg(leg.name, [hit for hit in leg.hits if hit[0] in visible])
        for leg in sorted(legs, key=lambda leg: leg.name)
    ]
    sums: defaultdict[str, float] = defaultdict(float)
    for leg in shown:
        weight = WEIGHTS[leg.name]
        scaled = normalised([score for _, score in leg.hits])
        for (id, _), share in zip(leg.hits, scaled, strict=True):
            sums[id] += share * weight / total
    return Fusion({id: min(1.0, score) for id, score in sums.items()}, shown)


def normalised(scores: Sequence[float]) -> list[float]:
    """Scores scaled so that the best is 1 and nothing in common is 0.

    Zero, not the worst hit, is the lower end: how far a list was cut off then sways nothing.
    """
    best = max(scores, default=0.0)
    if best <= 0:
        return [0.0] * len(scores)
    return [score / best if score > 0 else 0.0 for score in scores]


def ranked(
    scores: Mapping[str, float],
    limit: int,
    newest: Callable[[str], int],
    sources: Callable[[str], int] = lambda _: 1,
) -> list[str]:
    """The ids of the first, best first; equal scores by recency, then by independent sources, then by id."""
    if len(scores) > 4 * limit > 0:
        least = heapq.nlargest(limit, scores.values())[-1] - 10.0**-SAME * 2
        scores = {id: score for id, score in scores.items() if score >= least}
    by_score: defaultdict[float, list[str]] = defaultdict(list)
    for id, score in scores.items():
        by_score[-round(score, SAME)].append(id)
    # What decides between equals costs more than the rest: it is asked for of those among the first alone.
    order: list[str] = []
    for score in sorted(by_score):
        if len(order) >= limit:
            break
        equal = by_score[score]
        if len(equal) > 1:
            equal.sort(key=lambda id: (-newest(id), -sources(id), id))
        order += equal
    return order[:limit]
