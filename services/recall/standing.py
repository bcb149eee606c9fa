"""Standing: how a fact's spans stand to the time that is asked about."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.domain.graph import Span
from services.domain.instants import Instant, Interval


@dataclass(frozen=True, slots=True)
class Time:
    """The time asked about.

    `as_of` and `within` filter: only what holds then, only what meets it. `period`, read in the question,
    filters nothing: what meets it comes first. `show_ended` lets what does not hold `now` be answered too.
    """

    now: Instant
    as_of: Instant | None = None
    within: Interval | None = None
    period: Interval | None = None
    show_ended: bool = False

    @property
    def names_none(self) -> bool:
        """True when no filter of time is set: what holds now is meant."""
        return self.as_of is None and self.within is None


@dataclass(frozen=True, slots=True)
class Standing:
    """`holds`: at the time asked about. `current`: now."""

    holds: bool
    current: bool


_STANDINGS = {
    (holds, current): Standing(holds, current) for holds in (False, True) for current in (False, True)
}


def interval(span: Span) -> Interval:
    return Interval(span.valid_at, span.invalid_at)


def standing_of(spans: Sequence[Span], time: Time) -> Standing | None:
    """How believed spans stand to a time; None when they are not asked for."""
    # Asked of every hit of a question, most of which have one span and lie within neither filter.
    if not spans:
        return None
    now = time.now
    current = False
    for span in spans:
        start, end = span.valid_at, span.invalid_at
        if (start is None or start <= now) and (end is None or now < end):
            current = True
            break
    if time.period is None and time.as_of is None and time.within is None:
        return _STANDINGS[current, current] if current or time.show_ended else None
    return stand([interval(span) for span in spans], time)


def stand(spans: Sequence[Interval], time: Time) -> Standing | None:
    """The same of stretches of time."""
    current = any(span.contains(time.now) for span in spans)
    if time.names_none:
        asked = current if time.period is None else any(span.meets(time.period) for span in spans)
        if not spans or not (asked or current or time.show_ended):
            return None
        return _STANDINGS[asked, current]
    if time.as_of is not None and not any(span.contains(time.as_of) for span in spans):
        return None
    if time.within is not None and not any(span.meets(time.within) for span in spans):
        return None
    return _STANDINGS[True, current] if spans else None
