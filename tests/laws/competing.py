"""What competes, as design and ADR 5 word it: classes of duplicates, and who contradicts whom.

Written apart from the kernel, of which it imports nothing but the names of verdicts.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from services.domain.records import Judge, VerdictKind
from tests.laws.oracle import Claim, Denial, End

SINGLE = "lives_in"


class Fact(NamedTuple):
    """A statement about the one subject of a story; the texts of objects are all different."""

    predicate: str
    target: str


class Judged(NamedTuple):
    left: Fact
    right: Fact
    kind: VerdictKind
    judge: Judge
    attested: int

    @property
    def weight(self) -> tuple[int, int, int]:
        """User over model over rule, then attested last; doubt keeps both."""
        return self.judge, self.attested, self.kind

    @property
    def exempts(self) -> bool:
        """A pair in a slot contradicts unless a user says that it does not."""
        return self.kind is VerdictKind.COMPATIBLE and self.judge is Judge.USER


class Competing:
    """`shown`: of each fact the one as which it derives."""

    def __init__(
        self,
        facts: Sequence[Fact],
        said: Sequence[Claim | End | Denial],
        verdicts: Iterable[Judged],
        reads: Mapping[str, str],
        ids: Mapping[Fact, str],
    ) -> None:
        self._reads = reads
        self._said = sorted(verdicts, key=lambda verdict: verdict.weight)
        self._verdicts = list({frozenset(each[:2]): each for each in self._said}.values())
        self._group = {fact: {fact} for fact in facts}
        for one, other in combinations(facts, 2):
            if (one.predicate, self.content(one)) == (other.predicate, self.content(other)):
                self._join(one, other)
        links = [each for each in self._verdicts if each.kind is VerdictKind.DUPLICATE]
        links.sort(
            key=lambda each: (each.weight, sorted((self.content(f), ids[f]) for f in each[:2])), reverse=True
        )
        for each in links:
            if not self._told_apart(each.left, each.right):
                self._join(each.left, each.right)
        told = {one.of for one in said}
        claims = [one for one in said if isinstance(one, Claim)]
        first = {f: min((c.attested for c in claims if c.of == f.target), default=None) for f in facts}

        def precedence(f: Fact) -> tuple[bool, int, bool, str, str]:
            return first[f] is None, first[f] or 0, f.target not in told, self.content(f), ids[f]

        self.shown = {fact: min(group, key=precedence) for fact, group in self._group.items()}

    def content(self, fact: Fact) -> str:
        """The text by which ties are broken: that of what the object reads as."""
        return self._reads.get(fact.target, fact.target).casefold()

    def rivals(self, one: Fact, other: Fact) -> bool:
        """Whether two classes contradict, each named by one of its facts."""
        return self._contradict(one, other, self._said)

    def exempted(self, one: Fact, other: Fact) -> bool:
        """Whether they would contradict, had no user said that they are compatible."""
        unheard = [each for each in self._said if not each.exempts]
        return self._contradict(one, other, unheard) and not self.rivals(one, other)

    def share_a_slot(self, one: Fact, other: Fact) -> bool:
        return all(any(f.predicate == SINGLE for f in self._group[each]) for each in (one, other))

    def _contradict(self, one: Fact, other: Fact, verdicts: Iterable[Judged]) -> bool:
        if other in self._group[one]:
            return False
        between = [each for each in verdicts if self._between(one, other, each)]
        heaviest = max(between, key=lambda verdict: verdict.weight, default=None)
        if heaviest is not None and heaviest.kind is VerdictKind.CONTRADICTS:
            return True
        return self.share_a_slot(one, other) and not (heaviest is not None and heaviest.exempts)

    def _between(self, one: Fact, other: Fact, each: Judged) -> bool:
        """Whether a verdict is on the two classes."""
        return (each.left in self._group[one] and each.right in self._group[other]) or (
            each.left in self._group[other] and each.right in self._group[one]
        )

    def _told_apart(self, one: Fact, other: Fact) -> bool:
        return any(
            each.judge is Judge.USER
            and each.kind is not VerdictKind.DUPLICATE
            and self._between(one, other, each)
            for each in self._verdicts
        )

    def _join(self, one: Fact, other: Fact) -> None:
        group = self._group[one] | self._group[other]
        for fact in group:
            self._group[fact] = group
