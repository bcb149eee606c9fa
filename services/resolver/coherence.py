"""Coherence: what was decided on couples of entities, and which joins hold together with what is known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from services.domain.graph import Entity, EntityType
from services.domain.identity import Merge, counting_merges, merged
from services.domain.ids import EntityId
from services.domain.kernel.joined import Joined
from services.domain.likeness import Name, apart, fits
from services.domain.names import compatible
from services.domain.records import Judge
from services.resolver.candidates import Couple


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided on a couple, by whom and why."""

    couple: Couple
    same: bool
    judge: Judge
    why: str
    model: str = ""
    prompt_version: str = ""


class Groups:
    """Which entities read as one already, and which couples of groups somebody has judged."""

    def __init__(self, merges: Iterable[Merge], entities: Iterable[Entity]) -> None:
        """`merges` in force: whole groups, and every merge that names one of their members, `entities`."""
        every = list(merges)
        self._read_as = merged(every)
        self._types: dict[EntityId, set[EntityType]] = {}
        self._entities = {entity.id: entity for entity in entities}
        for entity in self._entities.values():
            self._types.setdefault(self.of(entity.id), set()).add(entity.type)
        self._judged = {frozenset({self.of(one), self.of(other)}) for one, other in counting_merges(every)}

    def of(self, entity: EntityId) -> EntityId:
        return self._read_as.get(entity, entity)

    def shown(self, entity: Entity) -> Entity:
        """What an entity reads as."""
        return self._entities.get(self.of(entity.id), entity)

    def is_open(self, one: Entity, other: Entity) -> bool:
        """Whether two are neither one already, nor judged, nor told apart by what they read as."""
        sides = [self.shown(one), self.shown(other)]
        if self.of(one.id) == self.of(other.id) or self.is_barred(self.of(one.id), self.of(other.id)):
            return False
        return not apart(*(Name(side.name, side.type) for side in sides))

    def is_barred(self, one: EntityId, other: EntityId) -> bool:
        """Whether somebody judged two groups, or they hold types that can't be one's."""
        types = [self._types.get(side, set()) for side in (one, other)]
        fit = all(compatible(left, right) for left in types[0] for right in types[1])
        return not fit or frozenset({one, other}) in self._judged


def coherent(verdicts: Sequence[Verdict], groups: Groups) -> list[Verdict]:
    """Verdicts without the joins that contradict each other, whatever their order.

    A join makes one of all whom it connects. Any two of these must be judged one, be one already, or fit each
    other by name, and nobody may have told them apart, nor may their names: an answer that makes one of two
    known persons over a third name counts for nothing.
    """
    same = [verdict for verdict in verdicts if verdict.same]
    names: dict[EntityId, list[Entity]] = {}
    joined: Joined[EntityId] = Joined()
    direct: set[frozenset[EntityId]] = set()
    for verdict in same:
        sides = [groups.of(verdict.couple.new.id), groups.of(verdict.couple.other.id)]
        for side, entity in zip(sides, (verdict.couple.new, verdict.couple.other), strict=True):
            names.setdefault(side, []).extend((entity, groups.shown(entity)))
        joined.join(*sides)
        direct.add(frozenset(sides))
    differ = {
        frozenset({groups.of(each.couple.new.id), groups.of(each.couple.other.id)})
        for each in verdicts
        if not each.same
    }
    broken = {
        joined.root(one)
        for one, other in combinations(sorted(names), 2)
        if joined.root(one) == joined.root(other)
        and (
            groups.is_barred(one, other)
            or frozenset({one, other}) in differ
            or not _one_by_name(names[one], names[other], frozenset({one, other}) in direct)
        )
    }
    return [
        each for each in verdicts if not each.same or joined.root(groups.of(each.couple.new.id)) not in broken
    ]


def _one_by_name(some: Sequence[Entity], others: Sequence[Entity], judged: bool) -> bool:
    pairs = [(Name(a.name, a.type), Name(b.name, b.type)) for a in some for b in others]
    if judged:
        return not any(apart(*pair) for pair in pairs)
    return any(fits(*pair) for pair in pairs)
