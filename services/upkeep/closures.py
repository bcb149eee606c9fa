"""Closures as the stores have them: all that the spans of some statements depend on, and what follows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, TypeVar

from services.domain.beliefs import SlotRecords, derive
from services.domain.graph import Entity, Literal, Statement
from services.domain.ids import EntityId, Revision, StatementId
from services.domain.lexicon import Lexicon
from services.domain.predicates import Cardinality
from services.domain.scope import Scope
from services.domain.slots import Reading, closures
from services.domain.timeline import DerivedSpan
from services.stores.graph.port import GraphStore, Records
from services.stores.graph.ties import Ties


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
    records: Records = NOTHING
    nodes: dict[EntityId, Entity] = field(default_factory=dict)
    asked: set[EntityId] = field(default_factory=set)

    @classmethod
    async def of(cls, graph: GraphStore, scope: Scope, lexicon: Lexicon, ids: Iterable[StatementId]) -> Self:
        closure = cls(lexicon)
        wanted, known = set(ids), set[StatementId]()
        while wanted:
            stored = await graph.records(scope, sorted(wanted))
            await closure._learn(graph, scope, stored.statements)
            known |= wanted
            wanted = await closure._tied(graph, scope, stored) - known
            closure.records = _merged(closure.records, stored)
        return closure

    @property
    def absent(self) -> set[EntityId]:
        """Entities that statements name and the store lacks."""
        return self.asked - self.nodes.keys()

    def cardinality(self, predicate: EntityId) -> Cardinality:
        """MULTI for one that was forgotten, or is not there."""
        key = self.nodes[predicate].key if predicate in self.nodes else ""
        return self.lexicon.cardinality(self.lexicon.name_of(predicate) or key)

    @property
    def reading(self) -> Reading:
        """How the nodes read now."""
        keys = {entity.id: entity.key for entity in self.nodes.values()}
        return Reading(self.lexicon.merged, keys, self.lexicon.inverses)

    def whole(self) -> set[StatementId]:
        """Statements of which all that they depend on is there.

        Without a node it is not known what competes: spans are looked at once it is back.
        """
        absent = self.absent
        groups = closures(self.records.statements, self.records.verdicts, self.cardinality, self.reading)
        return {
            one.id
            for group in groups
            if not any(absent.intersection(nodes_of(member)) for member in group)
            for one in group
        }

    def derived(self, known_at: Revision) -> Sequence[DerivedSpan]:
        """The spans that follow from the records as known; records of absent statements say nothing."""
        there = {statement.id for statement in self.records.statements}
        records = SlotRecords(
            tuple(self.records.statements),
            tuple(one for one in self.records.claims if one.statement in there),
            tuple(one for one in self.records.ends if one.statement in there),
            tuple(one for one in self.records.denials if one.statement in there),
            tuple(self.records.verdicts),
        )
        return derive(records, self.cardinality, known_at=known_at, reading=self.reading)

    async def _learn(self, graph: GraphStore, scope: Scope, statements: Sequence[Statement]) -> None:
        named = {node for statement in statements for node in nodes_of(statement)} - self.asked
        if named:
            self.nodes |= {entity.id: entity for entity in await graph.entities(scope, sorted(named))}
            self.asked |= named

    async def _tied(self, graph: GraphStore, scope: Scope, stored: Records) -> set[StatementId]:
        ties = Ties(graph, scope, self.reading, self.cardinality, self.lexicon.unspoken)
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
