"""Stays: when a record says that its object holds, read in the light of all records of that object.

World times are plain integers here, so that a missing border can be BEFORE or AFTER all others.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, cast

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Precision
from services.domain.records import Denial

Content = Callable[[StatementId], str]
"""What an object says, to break ties by: never an id where a text is known."""
BEFORE: Final = -(1 << 62)
AFTER: Final = 1 << 62


class Ending(NamedTuple):
    """That an object stopped at `at`: an end, or the end that a claim states.

    `opened` is for claims that state their start too: when the same start was first told as still open, or
    AFTER; None for all others.
    """

    at: int
    attested_at: int
    precision: Precision
    record: RecordId
    of_claim: bool
    opened: int | None = None


ending_of: Final = cast(
    "Callable[[tuple[int, int, Precision, RecordId, bool, int | None]], Ending]",
    partial(tuple.__new__, Ending),
)
"""An ending of its fields in their order: see `stay_of`."""


class Stay(NamedTuple):
    """A record says that `object` holds in `[start, end)`: asserted before `last`, persisting from there.

    `ending` is why it ends; `assumed` that it starts where it was said, not where the object began;
    no `start_precision`, that its start follows from what is known of others.
    """

    record: RecordId
    object: StatementId
    start: int
    last: int
    end: int
    attested_at: int
    seen: int
    stated_end: bool
    assumed: bool
    start_precision: Precision | None
    ending: Ending | None


_Fields = tuple[RecordId, StatementId, int, int, int, int, int, bool, bool, Precision | None, Ending | None]
stay_of: Final = cast("Callable[[_Fields], Stay]", partial(tuple.__new__, Stay))
"""A stay of its fields in their order: calling `Stay`, of which thousands are made, takes thrice as long."""


def begun_at(stay: Stay, start: int, last: int) -> Stay:
    """The same, begun at `start` and asserted before `last`."""
    return stay_of((*stay[:2], start, last, *stay[4:]))


class Denied:
    """What denials take from the stays of their objects that were attested no later."""

    def __init__(self, denials: Iterable[Denial]) -> None:
        self._by_object: dict[StatementId, list[tuple[int, int, Denial]]] = {}
        for denial in denials:
            start = BEFORE if denial.start is None else denial.start
            until = AFTER if denial.until is None else denial.until
            if start < until:
                self._by_object.setdefault(denial.statement, []).append((start, until, denial))
        for known in self._by_object.values():
            known.sort(key=lambda item: item[:2])

    def any_of(self, object: StatementId) -> bool:
        """Whether any stay of an object may be denied."""
        return object in self._by_object

    def cuts(self, stay: "Stay") -> bool:
        """Whether denials take something of a stay."""
        for denied_from, denied_until, denial in self._by_object.get(stay.object, ()):
            if (
                denied_from < stay.end
                and stay.start < denied_until
                and denial.attested_at >= stay.attested_at
            ):
                return True
        return False

    def left_of(self, object: StatementId, attested_at: int, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of `[start, end)` that no denial takes; an empty period is the instant it stands at."""
        known = self._by_object.get(object)
        if known is None:
            return [(start, end)]
        parts, at = [], start
        for denied_from, denied_until, denial in known:
            if denial.attested_at < attested_at or denied_until <= at:
                continue
            if denied_from > at:
                if denied_from >= end:
                    break
                parts.append((at, denied_from))
            at = denied_until
            if at >= end:
                return parts
        return [*parts, (at, end)]

    def before(self, object: StatementId, attested_at: int, at: int) -> bool:
        """Whether what held up to `at` is denied there."""
        return any(
            start < at <= until and denial.attested_at >= attested_at
            for start, until, denial in self._by_object.get(object, ())
        )

    def by(self, object: StatementId, attested_at: int, at: int) -> Denial:
        """The earliest attested denial that takes `at`. There must be one."""
        taking = [
            denial
            for start, until, denial in self._by_object[object]
            if start <= at < until and denial.attested_at >= attested_at
        ]
        return min(taking, key=lambda denial: (denial.attested_at, denial.id))
