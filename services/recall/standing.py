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


def interval(span: Span) -> Interval:
    return Interval(span.valid_at, span.invalid_at)


def stand(spans: Sequence[Interval], time: Time) -> Standing | None:
    """How believed spans stand to a time; None when they are not asked for."""
    current = any([span.contains(time.now) for span in spans])  # noqa: C419 - few, and asked for often
    if time.names_none:
        asked = current if time.period is None else any(span.meets(time.period) for span in spans)
        if not spans or not (asked or current or time.show_ended):
            return None
        return Standing(asked, current)
    if time.as_of is not None and not any(span.contains(time.as_of) for span in spans):
        return None
    if time.within is not None and not any(span.meets(time.within) for span in spans):
        return None
    return Standing(True, current) if spans else None
