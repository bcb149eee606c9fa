"""Unended: objects of which no end is told. Each claim speaks for itself but for coarse starts."""

from collections.abc import Iterable, Mapping, Sequence

from services.domain.instants import Precision
from services.domain.kernel.periods import NONE_BEGUN, Coarse, Placed, place
from services.domain.kernel.stays import AFTER, Stay
from services.domain.records import Claim


def exact(claims: Iterable[Claim]) -> list[Stay] | None:
    """The stays of claims that name no period and state no end; None where one does."""
    stays: list[Stay] = []
    for claim in claims:
        start = claim.start
        if claim.end is not None or (start is not None and claim.start_precision is not Precision.INSTANT):
            return None
        if start is None:
            stays.append(_stay((claim, claim.attested_at, Precision.INSTANT, None), True))
        else:
            stays.append(_stay((claim, start, Precision.INSTANT, None), False))
    return stays


class Unended:
    """The starts of one object, none of whose claims states an end. As Life, where there are ends."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._assumed = [claim for claim in claims if claim.start is None]
        self._stated = [claim for claim in claims if claim.start is not None]
        self._placed = place(self._stated, NONE_BEGUN)
        self.said_at = sorted(claim.attested_at for claim in self._assumed)
        """When the object was said to hold, with no word of since when."""
        self.coarse: dict[Coarse, list[Claim]] = {}
        """The claims that name a coarse start, by its period."""
        for claim, _, _, coarse in self._placed:
            if coarse is not None:
                self.coarse.setdefault(coarse, []).append(claim)

    def settled(self, begun: Mapping[Coarse, int] = NONE_BEGUN) -> list[Stay]:
        """The stays of all claims; `begun` as in Life."""
        placed = place(self._stated, begun) if begun else self._placed
        stays = [_stay((claim, claim.attested_at, Precision.INSTANT, None), True) for claim in self._assumed]
        stays += [_stay(each, False) for each in placed]
        return stays


def _stay(placed: Placed, assumed: bool) -> Stay:
    claim, start, precision, _ = placed
    seen = claim.seen
    return Stay(
        claim.id,
        claim.statement,
        start,
        max(start, seen),
        AFTER,
        claim.attested_at,
        seen,
        False,
        assumed,
        precision,
        None,
    )
