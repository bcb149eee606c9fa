"""Contested: where the answer is in doubt, as design and ADR 5 (holes 20 to 23) word it.

Written apart from the kernel, of which it imports nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from tests.laws.competing import Competing, Fact


class Span(NamedTuple):
    """A fact holds; `assumed`: from when it was said to, nobody knows since when."""

    fact: Fact
    start: int | None
    end: int | None
    assumed: bool = False

    def meets(self, other: "Span") -> bool:
        return all(
            one.start is None or two.end is None or one.start < two.end
            for one, two in ((self, other), (other, self))
        )


def contested(spans: Sequence[Span], among: Competing) -> set[Span]:
    """Those of the spans, which come in order of time."""
    found: set[Span] = set()
    for one, other in combinations(spans, 2):
        if one.meets(other) and among.exempted(one.fact, other.fact):
            found |= {one, other}
    for first, last in combinations(range(len(spans)), 2):
        here, back = spans[first], spans[last]
        if here.fact == back.fact:
            for away in _away(here.fact, spans[first + 1 : last], among):
                if away.assumed or back.assumed:
                    found |= {here, away, back}
    return found


def _away(fact: Fact, between: Sequence[Span], among: Competing) -> Iterator[Span]:
    """What alone came between two spans of a fact: in its slot, or of a rival that no slot joins with it."""
    own = [span for span in between if span.fact == fact]
    rivals = [span for span in between if among.rivals(fact, span.fact)]
    slot = [span for span in rivals if among.share_a_slot(fact, span.fact)]
    for each in rivals:
        same = slot if each in slot else [span for span in rivals if span.fact == each.fact]
        if len(same) == 1 and not own:
            yield each
