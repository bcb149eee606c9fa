"""Ties: the statements on which the spans of others depend, looked up as ids read now.

A SINGLE slot ties all that reads as in it, from the subject's end or, by an inverse, from the object's; and
statements that say the same triple are tied, whatever ids they name it by.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import product

from services.domain.graph import Literal, Statement, statement_id
from services.domain.ids import EntityId, StatementId
from services.domain.predicates import Cardinality
from services.domain.scope import Scope
from services.domain.slots import Reading, Slot
from services.stores.graph.port import GraphStore
from services.stores.paging import Page

PAGE = 1_000


class Ties:
    """For one reading. `unspoken`: predicates under which no statement is recorded."""

    def __init__(
        self,
        graph: GraphStore,
        scope: Scope,
        reading: Reading,
        cardinality: Callable[[EntityId], Cardinality],
        unspoken: Collection[EntityId] = (),
    ) -> None:
        self._graph = graph
        self._scope = scope
        self._reading = reading
        self._cardinality = cardinality
        self._unspoken = unspoken
        self._members = members(reading.merged)

    async def of(self, statements: Iterable[Statement]) -> set[StatementId]:
        """What shares a SINGLE slot or a triple with any of these; ids that are no statements among them.

        Raises StoreUnavailable.
        """
        slots: set[Slot] = set()
        tied: set[StatementId] = set()
        for one in statements:
            slots.update(slot for slot in self._reading.slots(one) if self._is_single(slot))
            tied |= self._same(one)
        near, far = self._pairs(slots)
        if near:
            for ids in (await self._graph.slots(self._scope, sorted(near))).values():
                tied.update(ids)
        for target, predicate in sorted(far):
            after = ""
            while True:
                page = Page(PAGE, after)
                listed = await self._graph.of_predicate(self._scope, predicate, target, page)
                tied.update(listed.items)
                after = listed.after
                if not after:
                    break
        return tied

    def among(self, statements: Sequence[Statement], wanted: Iterable[Statement]) -> set[StatementId]:
        """Of statements at hand, those that share a SINGLE slot with any wanted one."""
        slots = {slot for one in wanted for slot in self._reading.slots(one) if self._is_single(slot)}
        return {one.id for one in statements if slots.intersection(self._reading.slots(one))}

    def _is_single(self, slot: Slot) -> bool:
        return self._cardinality(slot[1]) is Cardinality.SINGLE

    def _pairs(self, slots: Iterable[Slot]) -> tuple[set[Slot], set[Slot]]:
        """Subjects with predicates, and objects with inverse predicates, under which a slot is recorded."""
        near: set[Slot] = set()
        far: set[Slot] = set()
        for node, predicate in slots:
            near.update(product(self._all(node), self._spoken(predicate)))
            inverse = self._reading.inverses.get(predicate)
            if inverse is not None:
                far.update(product(self._all(node), self._spoken(inverse)))
        return near, far

    def _same(self, one: Statement) -> set[StatementId]:
        """Ids that the same triple may be recorded under."""
        subject, predicate = self._reading.slot(one)
        target = self._reading.target(one)
        inverse = self._reading.inverses.get(predicate)
        targets: Sequence[EntityId | Literal] = [target] if isinstance(target, Literal) else self._all(target)
        triples = list(product(self._all(subject), self._spoken(predicate), targets))
        if inverse is not None and not isinstance(target, Literal):
            triples += product(self._all(target), self._spoken(inverse), self._all(subject))
        if len(triples) == 1:
            return set()
        return {statement_id(self._scope, *triple) for triple in triples} - {one.id}

    def _spoken(self, predicate: EntityId) -> list[EntityId]:
        return [one for one in self._all(predicate) if one not in self._unspoken]

    def _all(self, entity: EntityId) -> Sequence[EntityId]:
        return self._members.get(entity, (entity,))


def members(merged: Mapping[EntityId, EntityId]) -> Mapping[EntityId, Sequence[EntityId]]:
    """The ids that read as each entity, its own first."""
    found: defaultdict[EntityId, list[EntityId]] = defaultdict(list)
    for id, shown in merged.items():
        found[shown].append(id)
    return {shown: [shown, *sorted(ids)] for shown, ids in found.items()}
