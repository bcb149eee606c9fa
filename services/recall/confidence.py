"""Confidence of a statement: what the confidence of its claims comes to."""

from collections.abc import Iterable

from services.domain.ids import EpisodeId
from services.domain.records import Claim

CONTESTED_SHARE = 0.6
"""What is left of the confidence in a statement while evidence disagrees about it."""


def confidence(claims: Iterable[Claim], contested: bool) -> float:
    """1 - Π(1 - c) over independent sources, lowered while contested; 0 without a claim.

    An episode is one source however often it says a thing: its surest claim counts. Claims made by hand
    are one source together.
    """
    by_source: dict[EpisodeId | None, float] = {}
    for claim in claims:
        source = claim.source.episode
        by_source[source] = max(by_source.get(source, 0.0), min(1.0, max(0.0, claim.confidence)))
    doubt = 1.0
    for each in sorted(by_source.values()):
        doubt *= 1.0 - each
    sure = 1.0 - doubt if by_source else 0.0
    return sure * CONTESTED_SHARE if contested else sure
