"""Changes: what became of a fact between two dates as believed at one time, or between two beliefs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from services.domain.instants import Instant


class ChangeKind(StrEnum):
    """What became of it. Names as in the internal API."""

    ADDED = "added"
    """Held (or was believed) after, not before, and never earlier."""
    ENDED = "ended"
    """Held before, not after."""
    RESTORED = "restored"
    """Held (or was believed) after, not before, but earlier still."""
    EXPIRED = "expired"
    """Believed before, not after."""
    REDATED = "redated"
    """Believed before and after, with other dates."""


class Stretch(Protocol):
    """When something holds; None: unknown start, still holds."""

    @property
    def valid_at(self) -> Instant | None: ...
    @property
    def invalid_at(self) -> Instant | None: ...


S = TypeVar("S", bound=Stretch)


@dataclass(frozen=True, slots=True)
class Change(Generic[S]):
    """A difference, with the stretch that tells it at either point."""

    kind: ChangeKind
    before: S | None
    after: S | None

    @property
    def at(self) -> Instant | None:
        """Its date: when it ended, else when what holds or held began; None where that is not known."""
        if self.kind is ChangeKind.ENDED and self.before is not None:
            return self.before.invalid_at
        shown = self.after or self.before
        return shown.valid_at if shown is not None else None


def world_change(stretches: Sequence[S], before: Instant, after: Instant) -> Change[S] | None:
    """Of a fact that holds in these stretches, between two dates; None where it held at both or neither.

    `stretches` don't overlap and are believed at one time; all that lie before the later date are given.
    """
    then, now = _held(stretches, before), _held(stretches, after)
    if (then is None) == (now is None):
        return None
    if now is None:
        return Change(ChangeKind.ENDED, then, None)
    earlier = any(one.invalid_at is not None and one.invalid_at <= before for one in stretches)
    return Change(ChangeKind.RESTORED if earlier else ChangeKind.ADDED, None, now)


def belief_change(before: Sequence[S], after: Sequence[S], known_earlier: bool) -> Change[S] | None:
    """Of a fact between two beliefs in it, each in order of time; None where the dates are the same.

    `known_earlier`: it was believed at some time before the first one. Of several stretches the first that
    the other belief has not is told, else the last.
    """
    if not before and not after:
        return None
    if not before:
        kind = ChangeKind.RESTORED if known_earlier else ChangeKind.ADDED
        return Change(kind, None, after[-1])
    if not after:
        return Change(ChangeKind.EXPIRED, before[-1], None)
    dates, others = [_dates(one) for one in before], [_dates(one) for one in after]
    if dates == others:
        return None
    return Change(ChangeKind.REDATED, _telling(before, others), _telling(after, dates))


_Dates = tuple[Instant | None, Instant | None]


def _dates(stretch: Stretch) -> _Dates:
    return stretch.valid_at, stretch.invalid_at


def _telling(stretches: Sequence[S], others: Sequence[_Dates]) -> S:
    return next((one for one in stretches if _dates(one) not in others), stretches[-1])


def _held(stretches: Sequence[S], at: Instant) -> S | None:
    return next((one for one in stretches if _holds(one, at)), None)


def _holds(stretch: Stretch, at: Instant) -> bool:
    start, end = _dates(stretch)
    return (start is None or start <= at) and (end is None or at < end)
