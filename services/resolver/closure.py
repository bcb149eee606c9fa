"""Closure: the statements whose spans depend on each other, read whole before spans are derived.

A SINGLE predicate ties all statements of its subject, and of its object where its inverse is SINGLE; a
verdict ties its two statements, whatever their predicates; a merge or a declaration ties what it makes the
same triple or the same slot, and did before the draft. What a draft adds is laid over what the store has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from services.domain.beliefs import in_force, said_in_force
from services.domain.graph import Literal, Statement
from services.domain.ids import EntityId, RecordId, StatementId
from services.domain.lexicon import Lexicon
from services.domain.predicates import Cardinality
from services.domain.scope import Scope
from services.domain.slots import CardinalityOf, Reading, Slot, competition
from services.resolver.change import NOTHING, Draft
from services.resolver.met import Met
from services.resolver.readings import Readings
from services.stores.graph.port import GraphStore, Records
from services.stores.graph.ties import Ties
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
        said, verdicts = said_in_force(records), in_force(records.verdicts)
        return competition(records.statements, said, verdicts, self.cardinality, self.reading).shown


class Closure:
    """Reads and keeps the records of everything a draft's spans depend on."""

    def __init__(
        self,
        graph: GraphStore,
        met: Met,
        readings: Readings,
        lexicons: tuple[Lexicon, Lexicon],
        scope: Scope,
        draft: Draft,
    ) -> None:
        """`met` reads the same graph; `lexicons`: as known before the draft and with it."""
        self._graph = graph
        self._met = met
        self._readings = readings
        self._before, self._after = lexicons
        self._synonyms = (self._before, self._after)[: 1 if self._before is self._after else 2]
        self._asked: set[EntityId] = set()
        self._ties = Ties(met, scope, self._alike, self._turned, self._single, self._single_from_object)
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
        """Of a predicate that `read` has met, or that one reads as; with the draft."""
        return self._cardinality(self._after, predicate)

    @property
    def reading(self) -> Reading:
        """How the entities that `read` has met read with the draft, ties broken by their keys."""
        merges = self._readings.reading(self._keys).merged
        synonyms = {id: into for id, into in self._after.merged.items() if id in self._keys}
        return Reading({**synonyms, **merges}, self._keys, self._after.inverses)

    async def _reread(self) -> set[StatementId]:
        changed = sorted(await self._readings.changed() | self._renamed())
        found: set[StatementId] = set()
        page = Page(_NAMING)
        while changed:
            listed = await self._graph.naming(self._scope, changed, page)
            found.update(listed.items)
            if not listed.after:
                break
            page = Page(_NAMING, listed.after)
        return found

    def _renamed(self) -> set[EntityId]:
        """Predicates that read otherwise with the draft; of a declaration, it lists itself what follows."""
        before, after = self._before.merged, self._after.merged
        if self._before is self._after or self._draft.declared:
            return set()
        return {one for one in {*before, *after} if before.get(one) != after.get(one)}

    async def _stored(self, statements: set[StatementId]) -> Records:
        unread = sorted(statements - self._draft.read)
        records = await self._graph.records(self._scope, unread) if unread else NOTHING
        return _merged(records, _only(self._draft.stored, statements & self._draft.read))

    async def _tied(self, stored: Records, wanted: set[StatementId]) -> set[StatementId]:
        """What these statements depend on, or did before the draft: by a verdict that it revokes, too."""
        drafted = [one for one in self._draft.statements.values() if one.id in wanted]
        statements = [one for one in (*stored.statements, *drafted) if one.id in wanted]
        await self._learn([*statements, *self._draft.statements.values()])
        tied = await self._ties.of(statements) | self._drafted_with(statements)
        for verdict in (*stored.verdicts, *self._draft.verdicts.values()):
            pair = {verdict.left, verdict.right}
            if verdict.revoked_at is None and pair & wanted:
                tied |= pair
        return tied

    def _drafted_with(self, statements: Sequence[Statement]) -> set[StatementId]:
        """Drafted statements that share a SINGLE slot with any of these."""
        near: set[Slot] = set()
        far: set[Slot] = set()
        for one in statements if self._draft.statements else ():
            slots, turned = self._ties.slots(one)
            near |= slots
            far |= turned
        return {
            one.id
            for one in self._draft.statements.values()
            if (one.subject, one.predicate) in near or (one.object, one.predicate) in far
        }

    def _alike(self, entity: EntityId) -> set[EntityId]:
        """Those that read as one with it, before the draft or with it; predicates if they are there."""
        found = set(self._readings.alike(entity))
        for lexicon in self._synonyms:
            found |= {one for id in tuple(found) for one in lexicon.alike(id)}
        return {one for one in found if one == entity or one in self._keys or one not in self._asked}

    def _turned(self, predicate: EntityId) -> set[EntityId]:
        """Predicates that say the same from the object's end, before the draft or with it."""
        found: set[EntityId] = set()
        for lexicon in self._synonyms:
            for one in self._alike(predicate):
                inverse = lexicon.inverse_of(one)
                found |= {id for id in lexicon.alike(inverse) if id in self._keys} if inverse else set()
        return found

    def _single(self, predicate: EntityId) -> bool:
        return any(
            self._cardinality(lexicon, one) is Cardinality.SINGLE
            for lexicon in self._synonyms
            for one in self._alike(predicate)
        )

    def _single_from_object(self, predicate: EntityId) -> bool:
        return any(
            (inverse := lexicon.inverse_of(one)) is not None
            and self._cardinality(lexicon, inverse) is Cardinality.SINGLE
            for lexicon in self._synonyms
            for one in self._alike(predicate)
        )

    def _cardinality(self, lexicon: Lexicon, predicate: EntityId) -> Cardinality:
        # Its key is empty once the predicate was forgotten with all that it said.
        return lexicon.cardinality(lexicon.name_of(predicate) or self._keys.get(predicate, ""))

    async def _learn(self, statements: Sequence[Statement]) -> None:
        predicates = {statement.predicate for statement in statements}
        for lexicon in self._synonyms:
            for one in tuple(predicates):
                inverse = lexicon.inverse_of(one)
                predicates.update(lexicon.alike(one), lexicon.alike(inverse) if inverse else ())
        objects = {one.object for one in statements if not isinstance(one.object, Literal)}
        subjects = {one.subject for one in statements}
        await self._readings.learn(subjects | predicates | objects)
        named = {alike for one in predicates | objects for alike in self._readings.alike(one)}
        turned = {one.subject for one in statements if self._has_inverse(one.predicate)}
        named |= {alike for one in turned for alike in self._readings.alike(one)}
        unknown = named - self._keys.keys() - self._asked
        if unknown:
            self._asked |= unknown
            self._keys |= await self._met.keys(self._scope, unknown)

    def _has_inverse(self, predicate: EntityId) -> bool:
        return any(lexicon.inverse_of(predicate) is not None for lexicon in self._synonyms)


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
