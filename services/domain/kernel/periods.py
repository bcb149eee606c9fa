"""Periods: what coarse times mean, and where the starts of an object's claims are placed (rule 5)."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from services.domain.instants import FOREVER, Instant, Precision, period
from services.domain.records import Claim

_DAY: Final = 24 * 3_600_000_000
_INSTANT: Final = Precision.INSTANT


class Coarse(NamedTuple):
    """A period that a claim names as its start."""

    first: int
    precision: Precision


_coarse_of: Final = cast("Callable[[tuple[int, Precision]], Coarse]", partial(tuple.__new__, Coarse))

NONE_BEGUN: Final[Mapping[Coarse, int]] = MappingProxyType({})

Placed = tuple[Claim, int, Precision, Coarse | None]
"""A claim, its start, how fine that is known, and the period it names."""


def bounds(at: int, precision: Precision) -> tuple[int, int]:
    """First instant and end of the period that a time means; both are the time itself when it is exact."""
    if precision is _INSTANT:
        return at, at
    if precision is Precision.DAY:  # by far the most common, and no matter of calendars
        first = at - at % _DAY
        return first, min(first + _DAY, FOREVER)
    whole = period(Instant(at), precision)
    assert whole.start is not None
    assert whole.end is not None
    return whole.start, min(whole.end, FOREVER)


def place(claims: Sequence[Claim], begun: Mapping[Coarse, int]) -> list[Placed]:
    """Claims with a stated start, finest first: a coarse start that contains a finer one is that one.

    Others are at their period's first instant, or where `begun` says that they began in it.
    """
    if len(claims) == 1:  # most often, where there are many objects
        return _placed(claims, claims[0].start_precision, (), begun)
    precisions = {claim.start_precision for claim in claims}
    if precisions == {_INSTANT}:
        return [(claim, claim.start, _INSTANT, None) for claim in claims if claim.start is not None]
    if len(precisions) == 1:
        return _placed(claims, precisions.pop(), (), begun)
    by_precision: dict[Precision, list[Claim]] = {}
    for claim in claims:
        by_precision.setdefault(claim.start_precision, []).append(claim)
    placed: list[Placed] = []
    finer: list[tuple[int, Precision]] = []
    for precision in sorted(by_precision):
        here = _placed(by_precision[precision], precision, finer, begun)
        placed += here
        finer = sorted([*finer, *((start, known) for _, start, known, _ in here)])
    return placed


def _placed(
    claims: Sequence[Claim],
    precision: Precision,
    finer: Sequence[tuple[int, Precision]],
    begun: Mapping[Coarse, int],
) -> list[Placed]:
    here: list[Placed] = []
    for claim in claims:
        assert claim.start is not None
        first, after = bounds(claim.start, precision)
        if claim.end is not None:
            # A stay can't begin after its own end: a finer start there is of another stay.
            after = min(after, bounds(claim.end, claim.end_precision)[1])
        coarse = None if precision is _INSTANT else _coarse_of((first, precision))
        position = bisect_left(finer, (first,)) if finer else 0
        if position < len(finer) and finer[position][0] < after:
            start, known = finer[position]
        else:
            start, known = first if coarse is None else begun.get(coarse, first), precision
        here.append((claim, start, known, coarse))
    return here
