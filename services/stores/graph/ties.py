"""Ties: the statements on which the spans of others depend, looked up as ids read.

A SINGLE slot ties all that reads as in it, from the subject's end or, by an inverse, from the object's; and
statements that say the same triple are tied, whatever ids they name it by.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Protocol

from services.domain.graph import Literal, Statement, statement_id
from services.domain.ids import EntityId, StatementId
from services.domain.scope import Scope
from services.domain.slots import Slot
from services.stores.graph.port import NodePair
from services.stores.paging import Listed, Page

PAGE = 1_000

Alike = Callable[[EntityId], Collection[EntityId]]


class Slots(Protocol):
    """A GraphStore, as far as it is asked here."""

    async def slots(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]: ...

    async def of_predicate(
        self, scope: Scope, predicate: EntityId, target: EntityId | None, page: Page
    ) -> Listed[StatementId]: ...


class Ties:
    """`alike`: ids that read as one with an entity, itself included.

    `turned`: predicates that say the same as one from the object's end. `single`: whether a predicate takes
    one object at a time; `single_from_object`: whether its inverse does.
    """

    def __init__(
        self,
        graph: Slots,
        scope: Scope,
        alike: Alike,
        turned: Alike,
        single: Callable[[EntityId], bool],
        single_from_object: Callable[[EntityId], bool],
    ) -> None:
        self._graph = graph
        self._scope = scope
        self._alike = alike
        self._turned = turned
        self._single = single
        self._single_from_object = single_from_object

    async def of(self, statements: Iterable[Statement]) -> set[StatementId]:
        """What shares a SINGLE slot or a triple with any of these; ids that are no statements among them.

        Raises StoreUnavailable.
        """
        near, far, tied = set[Slot](), set[Slot](), set[StatementId]()
        for one in statements:
            slots, turned = self.slots(one)
            near |= slots
            far |= turned
            tied |= self._same(one)
        if near:
            for ids in (await self._graph.slots(self._scope, sorted(near))).values():
                tied.update(ids)
        for target, predicate in sorted(far):
            tied |= await self._of_object(predicate, target)
        return tied

    def slots(self, one: Statement) -> tuple[set[Slot], set[Slot]]:
        """Subjects with predicates, and objects with predicates, that its SINGLE slots are recorded under."""
        near, far = set[Slot](), set[Slot]()
        straight, turned = self._alike(one.predicate), self._turned(one.predicate)
        if self._single(one.predicate):
            subjects = self._alike(one.subject)
            near.update(product(subjects, straight))
            far.update(product(subjects, turned))
        if not isinstance(one.object, Literal) and self._single_from_object(one.predicate):
            targets = self._alike(one.object)
            near.update(product(targets, turned))
            far.update(product(targets, straight))
        return near, far

    def _same(self, one: Statement) -> set[StatementId]:
        """Ids that the same triple may be recorded under."""
        target = one.object
        subjects, predicates = self._alike(one.subject), self._alike(one.predicate)
        targets: Collection[EntityId | Literal] = (
            (target,) if isinstance(target, Literal) else self._alike(target)
        )
        triples: list[tuple[EntityId, EntityId, EntityId | Literal]] = list(
            product(subjects, predicates, targets)
        )
        if not isinstance(target, Literal):
            triples += product(self._alike(target), self._turned(one.predicate), subjects)
        if len(triples) == 1:
            return set()
        return {statement_id(self._scope, *triple) for triple in triples} - {one.id}

    async def _of_object(self, predicate: EntityId, target: EntityId) -> set[StatementId]:
        found: set[StatementId] = set()
        page = Page(PAGE)
        while True:
            listed = await self._graph.of_predicate(self._scope, predicate, target, page)
            found.update(listed.items)
            if not listed.after:
                return found
            page = Page(PAGE, listed.after)
