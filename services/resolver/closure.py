"""Closure: the statements whose spans depend on each other, read whole before spans are derived.

A SINGLE predicate ties all statements of its subject; a verdict ties its two statements, whatever their
predicates; a merge ties what it makes the same triple or the same slot, and did before the draft. What a
draft adds is laid over what the store has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol, TypeVar

from services.domain.beliefs import in_force
from services.domain.graph import Literal, Statement, statement_id
from services.domain.ids import EntityId, RecordId, StatementId
from services.domain.predicates import Cardinality, Vocabulary
from services.domain.scope import Scope
from services.domain.slots import CardinalityOf, Reading, competition
from services.resolver.change import NOTHING, Draft
from services.resolver.readings import Readings
from services.stores.graph.port import GraphStore, NodePair, Records
from services.stores.paging import Page

_NAMING = 1_000
"""Statements of merged entities that are asked for at once."""


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Identified)


@dataclass(frozen=True, slots=True)
class Read:
    """A whole closure as it stands, and what is needed to derive from it."""

    records: Records
    cardinality: CardinalityOf
    reading: Reading

    def shown(self) -> Mapping[StatementId, StatementId]:
        """The statement that each one derives as."""
        records = self.records
        claims, verdicts = in_force(records.claims), in_force(records.verdicts)
        return competition(records.statements, claims, verdicts, self.cardinality, self.reading).shown


class Closure:
    """Reads and keeps the records of everything a draft's spans depend on."""

    def __init__(
        self,
        graph: GraphStore,
        readings: Readings,
        vocabulary: Vocabulary,
        scope: Scope,
        draft: Draft,
    ) -> None:
        self._graph = graph
        self._readings = readings
        self._vocabulary = vocabulary
        self._scope = scope
        self._draft = draft
        # Drafted entities among them: one that was forgotten and is named again has its key back.
        self._keys: dict[EntityId, str] = dict(draft.keys)

    async def read(self) -> Records:
        """The closure of the draft's touched statements, with the draft's records and revocations applied.

        Touched, too, is whatever names an entity that reads otherwise from the draft on.
        """
        found = NOTHING
        missing = self._draft.touched() | await self._reread()
        known: set[StatementId] = set()
        while missing:
            stored = await self._stored(missing)
            found = _merged(found, _joined(stored, self._draft, missing))
            known |= missing
            missing = await self._tied(stored, missing) - known
        return found

    def cardinality(self, predicate: EntityId) -> Cardinality:
        """Of a predicate that `read` has met."""
        key = self._keys.get(predicate)  # empty once the predicate was forgotten with all that it said
        return self._vocabulary.cardinality(key) if key else Cardinality.MULTI

    @property
    def reading(self) -> Reading:
        """How the entities that `read` has met read with the draft, ties broken by their keys."""
        return self._readings.reading(self._keys)

    async def _reread(self) -> set[StatementId]:
        changed = sorted(await self._readings.changed())
        found: set[StatementId] = set()
        page = Page(_NAMING)
        while changed:
            listed = await self._graph.naming(self._scope, changed, page)
            found.update(listed.items)
            if not listed.after:
                break
            page = Page(_NAMING, listed.after)
        return found

    async def _stored(self, statements: set[StatementId]) -> Records:
        unread = sorted(statements - self._draft.read)
        records = await self._graph.records(self._scope, unread) if unread else NOTHING
        return _merged(records, _only(self._draft.stored, statements & self._draft.read))

    async def _tied(self, stored: Records, wanted: set[StatementId]) -> set[StatementId]:
        """What these statements depend on, or did before the draft: by a verdict that it revokes, too."""
        drafted = [one for one in self._draft.statements.values() if one.id in wanted]
        statements = [one for one in (*stored.statements, *drafted) if one.id in wanted]
        await self._learn(statements)
        slots = {slot for one in statements for slot in self._slots(one)}
        tied = {id for one in statements for id in self._same(one)}
        tied |= {one.id for one in self._draft.statements.values() if (one.subject, one.predicate) in slots}
        if slots:
            for ids in (await self._graph.slots(self._scope, sorted(slots))).values():
                tied.update(ids)
        for verdict in (*stored.verdicts, *self._draft.verdicts.values()):
            pair = {verdict.left, verdict.right}
            if verdict.revoked_at is None and pair & wanted:
                tied |= pair
        return tied

    def _slots(self, statement: Statement) -> Iterable[NodePair]:
        """The slots that read as the statement's, if it takes one object at a time, or did."""
        predicates = self._readings.alike(statement.predicate)
        if any(self.cardinality(predicate) is Cardinality.SINGLE for predicate in predicates):
            return product(self._readings.alike(statement.subject), predicates)
        return ()

    def _same(self, statement: Statement) -> Iterable[StatementId]:
        """The statements, there or not, of every triple that reads as this one's."""
        target = statement.object
        subjects = self._readings.alike(statement.subject)
        predicates = self._readings.alike(statement.predicate)
        targets = (target,) if isinstance(target, Literal) else tuple(self._readings.alike(target))
        if len(subjects) == len(predicates) == len(targets) == 1:
            return ()
        return (statement_id(self._scope, *triple) for triple in product(subjects, predicates, targets))

    async def _learn(self, statements: Sequence[Statement]) -> None:
        predicates = {statement.predicate for statement in statements}
        objects = {one.object for one in statements if not isinstance(one.object, Literal)}
        await self._readings.learn({one.subject for one in statements} | predicates | objects)
        named = {alike for one in predicates | objects for alike in self._readings.alike(one)}
        unknown = sorted(named - self._keys.keys())
        if unknown:
            found = await self._graph.entities(self._scope, unknown)
            self._keys |= {entity.id: entity.key for entity in found}


def _only(records: Records, ids: set[StatementId]) -> Records:
    return Records(
        [one for one in records.statements if one.id in ids],
        [claim for claim in records.claims if claim.statement in ids],
        [end for end in records.ends if end.statement in ids],
        [denial for denial in records.denials if denial.statement in ids],
        [verdict for verdict in records.verdicts if verdict.left in ids or verdict.right in ids],
        [span for span in records.spans if span.statement in ids],
    )


def _merged(one: Records, other: Records) -> Records:
    return Records(
        _unique(one.statements, other.statements),
        _unique(one.claims, other.claims),
        _unique(one.ends, other.ends),
        _unique(one.denials, other.denials),
        _unique(one.verdicts, other.verdicts),
        _unique(one.spans, other.spans),
    )


def _unique(one: Sequence[T], other: Sequence[T]) -> tuple[T, ...]:
    by_id: dict[str, T] = {item.id: item for item in (*one, *other)}
    return tuple(by_id.values())


def _joined(stored: Records, draft: Draft, ids: Iterable[StatementId]) -> Records:
    """What the store has of `ids`, with what the draft adds and without what it revokes."""
    wanted = set(ids)
    return Records(
        _unique([s for s in draft.statements.values() if s.id in wanted], stored.statements),
        _of(stored.claims, draft.claims, draft, wanted),
        _of(stored.ends, draft.ends, draft, wanted),
        _of(stored.denials, draft.denials, draft, wanted),
        _unique(
            [v for v in stored.verdicts if v.id not in draft.revocations],
            [v for v in draft.verdicts.values() if v.left in wanted or v.right in wanted],
        ),
        stored.spans,
    )


class _Said(Protocol):
    @property
    def id(self) -> RecordId: ...

    @property
    def statement(self) -> StatementId: ...


S = TypeVar("S", bound=_Said)


def _of(
    stored: Sequence[S], added: Mapping[RecordId, S], draft: Draft, wanted: set[StatementId]
) -> tuple[S, ...]:
    # What the store has comes last, so that a record said twice keeps its first revision.
    kept = [record for record in stored if record.id not in draft.revocations]
    return _unique([record for record in added.values() if record.statement in wanted], kept)
