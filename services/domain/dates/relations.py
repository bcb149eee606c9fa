"""How a sentence stands to the times it names: at, since, until, from ... to; shared by all languages."""

from dataclasses import dataclass
from enum import StrEnum

from services.domain.dates.calendar import Prefer, Reading, Reference


class Relation(StrEnum):
    """How a sentence stands to the time it names."""

    AT = "at"
    SINCE = "since"
    UNTIL = "until"
    BEFORE = "before"
    AFTER = "after"
    RANGE = "range"
    FOR = "for"
    """A stretch of time up to now ("for four years"), or a mere duration: the verb's tense tells."""


@dataclass(frozen=True, slots=True)
class Told:
    """An expression whose times are still local: `text[begin:finish]`."""

    begin: int
    finish: int
    first: Reading | None
    last: Reading | None
    relation: Relation


def same_year(first: Reading, last: Reading, said: Reference) -> tuple[Reading, Reading]:
    """Lets a stated year decide the one that was left out; a range never runs backwards if it need not."""
    try:
        if first.floats and not last.floats:
            first = first.in_year(last.first.year)
            if first.first > last.first:
                first = first.in_year(last.first.year - 1)
        elif last.floats:
            year = first.first.year
            last = last.in_year(year)
            if last.first < first.first:
                last = last.in_year(year + 1)
            if first.floats and said.prefer is Prefer.PAST and last.first > said.now:
                first, last = first.in_year(year - 1), last.in_year(last.first.year - 1)
    except ValueError:
        return first, last
    return first, last
