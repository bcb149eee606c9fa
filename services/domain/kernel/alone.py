"""Alone: when an object holds that nothing contradicts. Its stays are joined where they touch."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from services.domain.kernel.held import Held, attestation
from services.domain.kernel.stays import AFTER, Denied, Stay

_Piece = tuple[int, int, Stay]
"""What denials leave of a stay: `[start, end)`."""
_START: Final = itemgetter(0)


def alone(stays: Sequence[Stay], denied: Denied) -> list[Held]:
    """What holds when, in order of time, of the stays of one object."""
    pieces = _pieces(stays, denied)
    if len(pieces) == 1:
        return [_held(pieces, pieces[0][1], denied)]
    pieces.sort(key=_START)
    found: list[Held] = []
    together: list[_Piece] = []
    until = 0
    for piece in pieces:
        if together and piece[0] > until:
            found.append(_held(together, until, denied))
            together = []
        until = max(until, piece[1]) if together else piece[1]
        together.append(piece)
    if together:
        found.append(_held(together, until, denied))
    return found


def _pieces(stays: Sequence[Stay], denied: Denied) -> list[_Piece]:
    if not (stays and denied.any_of(stays[0].object)):
        return [(stay.start, stay.end, stay) for stay in stays if stay.start < stay.end]
    return [
        (*piece, stay)
        for stay in stays
        if stay.start < stay.end
        for piece in denied.left_of(stay.object, stay.attested_at, stay.start, stay.end)
    ]


def _held(pieces: Sequence[_Piece], end: int, denied: Denied) -> Held:
    """Of pieces that make one unbroken period."""
    start, _, stay = pieces[0]
    held = Held(stay.object, start)
    held.end = end
    if len(pieces) == 1:  # most often, where there are many objects
        held.started_by = stay.record
        held.begun_with((stay,) if stay.start == start else ())
    else:
        held.started_by = min([stay for _, _, stay in pieces], key=attestation).record
        held.begun_with([stay for begun, _, stay in pieces if begun == start == stay.start])
    if end != AFTER:
        held.ended_with((stay for _, until, stay in pieces if until == end), denied)
    return held
