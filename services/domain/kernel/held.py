"""Held: an unbroken period in which an object holds, what began it and what ended it."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Precision
from services.domain.kernel.stays import AFTER, Denied, Stay

_NOBODY: Final = RecordId("")


class Held:
    """An object holds in `[start, end)`; grows while a sweep goes on."""

    __slots__ = (
        "assumed",
        "end",
        "end_precision",
        "ended_by",
        "first",
        "object",
        "precision",
        "start",
        "started_by",
        "struck_by",
    )

    def __init__(self, object: StatementId, start: int) -> None:
        self.object = object
        self.start = start
        self.end = AFTER
        self.first = -1
        """The earliest attested of its stays, as the sweep numbers them; below 0 while it isn't known."""
        self.started_by = _NOBODY
        """That stay's record, once the period is over."""
        self.precision = Precision.INSTANT
        self.assumed = False
        self.ended_by: RecordId | None = None
        self.end_precision = Precision.INSTANT
        self.struck_by: Held | None = None
        """What took over."""

    def begun_with(self, starting: Iterable[Stay]) -> bool:
        """Says how fine the start is known, by the stays that start there; False if none tells."""
        told = False
        for stay in starting:
            precision = stay.start_precision
            if precision is None:
                continue
            if not told or precision < self.precision:
                self.precision = precision
            self.assumed = stay.assumed and (self.assumed or not told)
            told = True
        return told

    def made_room_by(self, ended: Iterable[Stay]) -> None:
        """Says how fine the start is known by the ends of rivals that are over there."""
        endings = [stay.ending for stay in ended if stay.ending is not None and stay.end == self.start]
        self.precision = min((ending.precision for ending in endings), default=Precision.INSTANT)

    def struck_off_by(self, other: "Held") -> None:
        """It would have gone on, but another takes over where that begins."""
        self.end, self.ended_by, self.struck_by = other.start, None, other

    def ended_with(self, stays: Iterable[Stay], denied: Denied) -> None:
        """Says why the last stays are over: by the earliest attested end, else the denial."""
        endings = []
        denials = []
        for stay in stays:
            if stay.end != self.end:
                denials.append(denied.by(stay.object, stay.attested_at, self.end))
            elif stay.ending is not None:
                endings.append(stay.ending)
        if endings:
            first = min(endings, key=lambda ending: (ending.attested_at, ending.precision, ending.record))
            self.ended_by, self.end_precision = first.record, first.precision
        else:
            self.ended_by = min(denials, key=lambda denial: (denial.attested_at, denial.id)).id


attestation: Final = attrgetter("attested_at", "start", "end", "seen", "record")
"""Of a stay: earliest attested first, then by content; ids only tell apart what says the same."""
