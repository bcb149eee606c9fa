"""Rivals: which statements can't hold at once, kept so that a slot of thousands is cheap to ask about."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from services.domain.ids import StatementId

Contradicts = Callable[[StatementId, StatementId], bool]
"""A symmetric relation; no statement contradicts itself."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """The relation "contradicts" as slots, with exceptions.

    Statements of one slot contradict each other, but for the pairs in `exempt`; those in `judged` contradict
    although no slot joins them. Both name each pair both ways. A statement without a slot stands alone.
    """

    slots: Mapping[StatementId, Hashable] = field(default_factory=dict)
    exempt: Mapping[StatementId, frozenset[StatementId]] = field(default_factory=dict)
    judged: Mapping[StatementId, frozenset[StatementId]] = field(default_factory=dict)

    def __call__(self, one: StatementId, other: StatementId) -> bool:
        if one == other:
            return False
        if self.judged and other in self.judged.get(one, ()):
            return True
        slots = self.slots
        if slots.get(one, one) != slots.get(other, other):
            return False
        return not self.exempt or other not in self.exempt.get(one, ())

    def slot(self, statement: StatementId) -> Hashable:
        return self.slots.get(statement, statement)

    def all_contradict(self, statements: Sequence[StatementId]) -> bool:
        """Whether each of them contradicts all others, as far as one slot without exceptions says so."""
        slots = {self.slots.get(statement, statement) for statement in statements}
        return len(slots) == 1 and not (self.exempt and any(map(self.exempt.__contains__, statements)))

    def groups(self, statements: Iterable[StatementId]) -> list[list[StatementId]]:
        """The statements in groups such that no two of different groups contradict; in the order given."""
        given = dict.fromkeys(statements)
        by_slot: dict[Hashable, list[StatementId]] = {}
        for statement in given:
            by_slot.setdefault(self.slots.get(statement, statement), []).append(statement)
        if not self.judged:
            return list(by_slot.values())
        groups, seen = [], set()
        for first in given:
            if self.slot(first) in seen:
                continue
            waiting, group = [self.slot(first)], []
            seen.add(self.slot(first))
            while waiting:
                members = by_slot[waiting.pop()]
                group += members
                linked = {
                    self.slot(other)
                    for one in members
                    for other in self.judged.get(one, ())
                    if other in given
                }
                waiting += linked - seen
                seen |= linked
            groups.append(group)
        return groups

    @staticmethod
    def among(statements: Collection[StatementId], contradicts: Contradicts) -> "Rivals":
        """The same relation, asked once for each pair. A clique becomes one slot."""
        if isinstance(contradicts, Rivals):
            return contradicts
        pairs = [pair for pair in combinations(statements, 2) if contradicts(*pair)]
        if 2 * len(pairs) == len(statements) * (len(statements) - 1):
            return Rivals(slots=dict.fromkeys(statements, "the only slot"))
        return Rivals(judged=both_ways(pairs))


def both_ways(pairs: Iterable[tuple[StatementId, StatementId]]) -> dict[StatementId, frozenset[StatementId]]:
    """Each statement with those it is paired with."""
    found: dict[StatementId, set[StatementId]] = {}
    for one, other in pairs:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {statement: frozenset(others) for statement, others in found.items()}
