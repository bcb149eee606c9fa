"""Alone: when an object holds that nothing contradicts. Its stays are joined where they touch."""

from collections.abc import Sequence

from services.domain.kernel.held import Held, attestation
from services.domain.kernel.stays import AFTER, Denied, Stay


def alone(stays: Sequence[Stay], denied: Denied) -> list[Held]:
    """What holds when, in order of time, of the stays of one object. `first` is an index into the stays."""
    pieces = [
        (*piece, at)
        for at, stay in enumerate(stays)
        if stay.start < stay.end
        for piece in denied.left_of(stay.object, stay.attested_at, stay.start, stay.end)
    ]
    pieces.sort()
    found: list[Held] = []
    together: list[tuple[int, int, int]] = []
    until = 0
    for piece in pieces:
        if together and piece[0] > until:
            found.append(_held(together, until, stays, denied))
            together = []
        until = max(until, piece[1]) if together else piece[1]
        together.append(piece)
    if together:
        found.append(_held(together, until, stays, denied))
    return found


def _held(pieces: Sequence[tuple[int, int, int]], end: int, stays: Sequence[Stay], denied: Denied) -> Held:
    """Of pieces (start, end, stay) that make one unbroken period."""
    start, _, first = pieces[0]
    held = Held(stays[first].object, start)
    held.first = min((at for _, _, at in pieces), key=lambda at: attestation(stays[at]))
    held.end = end
    held.begun_with(stays[at] for begun, _, at in pieces if begun == stays[at].start == start)
    if end != AFTER:
        held.ended_with((stays[at] for _, until, at in pieces if until == end), denied)
    return held
