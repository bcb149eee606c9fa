"""Closures as the stores have them: all that the spans of some statements depend on, and what follows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, TypeVar

from services.domain.beliefs import SlotRecords, derive, in_force
from services.domain.graph import Entity, Literal, Statement
from services.domain.identity import Merge, merged
from services.domain.ids import EntityId, RecordId, Revision, StatementId
from services.domain.lexicon import Lexicon
from services.domain.predicates import Cardinality
from services.domain.scope import Scope
from services.domain.slots import Reading, closures
from services.domain.timeline import DerivedSpan
from services.stores.graph.port import GraphStore, Records
from services.stores.graph.ties import Ties
from services.stores.memory.groups import connected
from services.upkeep.parts import Stores


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Identified)

NOTHING = Records((), (), (), (), (), ())


def nodes_of(statement: Statement) -> list[EntityId]:
    """Subject, predicate, and the object where it is an entity."""
    nodes = [statement.subject, statement.predicate]
    return nodes if isinstance(statement.object, Literal) else [*nodes, statement.object]


@dataclass
class Closure:
    """Read once for some statements. `nodes` are the entities that its statements name, as far as there.

    Raises StoreUnavailable. As large as what the statements depend on: a slot may tie many together.
    """

    lexicon: Lexicon
    known_at: Revision
    records: Records = NOTHING
    nodes: dict[EntityId, Entity] = field(default_factory=dict)
    asked: set[EntityId] = field(default_factory=set)
    merges: dict[RecordId, Merge] = field(default_factory=dict)
    reads: Mapping[EntityId, EntityId] = field(default_factory=dict)
    """What merged entities read as in `known_at`."""

    @classmethod
    async def of(
        cls,
        stores: Stores,
        scope: Scope,
        lexicon: Lexicon,
        known_at: Revision,
        ids: Iterable[StatementId],
    ) -> Self:
        closure = cls(lexicon, known_at)
        wanted, known = set(ids), set[StatementId]()
        while wanted:
            stored = await stores.graph.records(scope, sorted(wanted))
            await closure._learn(stores, scope, stored.statements)
            known |= wanted
            wanted = await closure._tied(stores.graph, scope, stored) - known
            closure.records = _merged(closure.records, stored)
        return closure

    @property
    def absent(self) -> set[EntityId]:
        """Entities that statements name, or merges with those, and the store lacks."""
        return self.asked - self.nodes.keys()

    def cardinality(self, predicate: EntityId) -> Cardinality:
        """MULTI for one that was forgotten, or is not there."""
        key = self.nodes[predicate].key if predicate in self.nodes else ""
        return self.lexicon.cardinality(self.lexicon.name_of(predicate) or key)

    def whole(self) -> set[StatementId]:
        """Statements of which all that they depend on is there.

        Without a node it is not known what competes: spans are looked at once it is back.
        """
        absent = self.absent
        groups = closures(self.records.statements, self.records.verdicts, self.cardinality, self._reading)
        return {
            one.id
            for group in groups
            if not any(absent.intersection(nodes_of(member)) for member in group)
            for one in group
        }

    @property
    def _reading(self) -> Reading:
        keys = {entity.id: entity.key for entity in self.nodes.values()}
        return Reading({**self.lexicon.merged, **self.reads}, keys, self.lexicon.inverses)

    def derived(self) -> Sequence[DerivedSpan]:
        """The spans that follow from the records as known; records of absent statements say nothing."""
        there = {statement.id for statement in self.records.statements}
        records = SlotRecords(
            tuple(self.records.statements),
            tuple(one for one in self.records.claims if one.statement in there),
            tuple(one for one in self.records.ends if one.statement in there),
            tuple(one for one in self.records.denials if one.statement in there),
            tuple(self.records.verdicts),
        )
        return derive(records, self.cardinality, known_at=self.known_at, reading=self._reading)

    async def _learn(self, stores: Stores, scope: Scope, statements: Sequence[Statement]) -> None:
        named = {node for statement in statements for node in nodes_of(statement)} - self.asked
        if not named:
            return
        for merge in await connected(stores.readings, scope, named):
            self.merges[merge.id] = merge
            named |= {merge.entity, merge.into} - self.asked
        self.reads = merged(in_force(self.merges.values(), self.known_at))
        self.nodes |= {entity.id: entity for entity in await stores.graph.entities(scope, sorted(named))}
        self.asked |= named

    async def _tied(self, graph: GraphStore, scope: Scope, stored: Records) -> set[StatementId]:
        groups = {shown: {shown} for shown in self.reads.values()}
        for node, into in self.reads.items():
            groups[into].add(node)

        def alike(node: EntityId) -> set[EntityId]:
            found = groups.get(self.reads.get(node, node)) or {node}
            return {one for id in found for one in self.lexicon.alike(id)}

        def turned(predicate: EntityId) -> set[EntityId]:
            inverse = self.lexicon.inverse_of(predicate)
            return set(self.lexicon.alike(inverse)) if inverse else set()

        def single(predicate: EntityId) -> bool:
            shown = self.reads.get(predicate, predicate)
            return self.cardinality(shown) is Cardinality.SINGLE

        def single_from_object(predicate: EntityId) -> bool:
            inverse = self.lexicon.inverse_of(predicate)
            return inverse is not None and self.cardinality(inverse) is Cardinality.SINGLE

        ties = Ties(graph, scope, alike, turned, single, single_from_object)
        tied = await ties.of(stored.statements)
        tied |= {side for verdict in stored.verdicts for side in (verdict.left, verdict.right)}
        return tied


def _merged(one: Records, other: Records) -> Records:
    return replace(
        one,
        statements=_unique(one.statements, other.statements),
        claims=_unique(one.claims, other.claims),
        ends=_unique(one.ends, other.ends),
        denials=_unique(one.denials, other.denials),
        verdicts=_unique(one.verdicts, other.verdicts),
        spans=_unique(one.spans, other.spans),
    )


def _unique(one: Sequence[T], other: Sequence[T]) -> tuple[T, ...]:
    return tuple({item.id: item for item in (*one, *other)}.values())
