"""Unended: objects of which no end is told. Each claim speaks for itself but for coarse starts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from services.domain.instants import Precision
from services.domain.kernel.periods import NONE_BEGUN, Coarse, Placed, place
from services.domain.kernel.stays import AFTER, Stay, stay_of
from services.domain.records import Claim

_INSTANT: Final = Precision.INSTANT


def exact(claims: Iterable[Claim]) -> list[Stay]:
    """The stays of claims that name no period and state no end."""
    stays: list[Stay] = []
    for claim in claims:
        attested_at, seen, stated = claim.attested_at, claim.seen, claim.start
        start = attested_at if stated is None else stated
        last = seen if seen > start else start
        stays.append(
            stay_of(
                (
                    claim.id,
                    claim.statement,
                    start,
                    last,
                    AFTER,
                    attested_at,
                    seen,
                    False,
                    stated is None,
                    _INSTANT,
                    None,
                )
            )
        )
    return stays


class Unended:
    """The starts of one object, none of whose claims states an end. As Life, where there are ends."""

    __slots__ = ("_mentions", "_placed", "said_at")
    endless: Final = True

    def __init__(self, claims: Sequence[Claim]) -> None:
        assumed: list[Claim] = []
        stated: list[Claim] = []
        for claim in claims:
            (assumed if claim.start is None else stated).append(claim)
        self._mentions = exact(assumed)
        self._placed = place(stated, NONE_BEGUN)
        self.said_at = [claim.attested_at for claim in assumed]
        """When the object was said to hold, with no word of since when; in order."""
        if len(assumed) > 1:
            self.said_at.sort()

    @property
    def coarse(self) -> Mapping[Coarse, Sequence[Claim]]:
        """The claims that name a coarse start, by its period."""
        found: dict[Coarse, list[Claim]] = {}
        for claim, _, _, coarse in self._placed:
            if coarse is not None:
                found.setdefault(coarse, []).append(claim)
        return found

    def settled(self, begun: Mapping[Coarse, int] = NONE_BEGUN) -> list[Stay]:
        """The stays of all claims; `begun` as in Life."""
        stays = self._mentions.copy()
        for claim, start, precision, _ in self._placed_by(begun) if begun else self._placed:
            seen = claim.seen
            last = seen if seen > start else start
            stays.append(
                stay_of(
                    (
                        claim.id,
                        claim.statement,
                        start,
                        last,
                        AFTER,
                        claim.attested_at,
                        seen,
                        False,
                        False,
                        precision,
                        None,
                    )
                )
            )
        return stays

    def _placed_by(self, begun: Mapping[Coarse, int]) -> Sequence[Placed]:
        if len(self._placed) > 1:
            return place([claim for claim, _, _, _ in self._placed], begun)
        ((claim, start, precision, coarse),) = self._placed
        return [(claim, start if coarse is None else begun.get(coarse, start), precision, coarse)]
