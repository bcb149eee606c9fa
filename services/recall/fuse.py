"""Fuse: one score from what the legs found: a weighted sum of scores, each scaled by its leg's best.

Scores of one leg compare only among themselves, so each is scaled to 0..1 first. Summing them beats
equal-weight reciprocal rank fusion, which forgets by how much the first is better than the second.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Found:
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


def fuse(legs: Sequence[Leg], visible: Container[str]) -> dict[str, Fused]:
    """Fused scores of the visible hits, 0 to 1. What is not visible sways no score of what is."""
    total = sum(WEIGHTS[leg.name] for leg in legs)
    sums: dict[str, float] = {}
    found: dict[str, list[Found]] = {}
    for leg in sorted(legs, key=lambda leg: leg.name):  # sums of floats depend on their order
        hits = [(id, score) for id, score in leg.hits if id in visible]
        scaled = normalised([score for _, score in hits])
        for rank, ((id, score), share) in enumerate(zip(hits, scaled, strict=True), start=1):
            sums[id] = sums.get(id, 0.0) + share * WEIGHTS[leg.name] / total
            found.setdefault(id, []).append(Found(leg.name, rank, score))
    return {id: Fused(id, min(1.0, score), tuple(found[id])) for id, score in sums.items()}


def normalised(scores: Sequence[float]) -> list[float]:
    """Scores scaled so that the best is 1 and nothing in common is 0.

    Zero, not the worst hit, is the lower end: how far a list was cut off then sways nothing.
    """
    best = max(scores, default=0.0)
    return [max(0.0, score) / best if best > 0 else 0.0 for score in scores]


def ranked(
    items: Sequence[Fused], newest: Callable[[str], int], sources: Callable[[str], int]
) -> list[Fused]:
    """Best first; equal scores by recency, then by independent sources, then by id."""
    return sorted(
        items, key=lambda item: (-round(item.score, SAME), -newest(item.id), -sources(item.id), item.id)
    )
