"""Verdicts: how new statements stand to what is known, and their predicates to known ones.

One question for all new facts of a chunk (asking.py). A SINGLE slot needs no verdict to compete; there only
near-equal objects are asked about, as duplicates.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from rapidfuzz import fuzz

from services.domain.graph import Entity, Literal, Statement
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, StatementId, derive_id
from services.domain.instants import Instant, Interval
from services.domain.lexicon import Lexicon
from services.domain.memory import EpisodeKind
from services.domain.predicates import Cardinality
from services.domain.records import Judge, Verdict, VerdictKind
from services.domain.scope import Scope
from services.llm.port import Embedder
from services.llm.tasks import JudgeStatements, KnownFact, Pair, PairVerdict, Setting
from services.resolver.change import Draft
from services.resolver.deciding import Action, by_model, decide
from services.resolver.likening import Likely, Likening
from services.resolver.memo import Memo, PredicatePair, StatementPair, Told
from services.resolver.readings import Readings
from services.stores.graph.port import AsOf, GraphStore, NodePair, StatementView
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import ReadingStore, TextStore
from services.stores.vectors.moving import search_statements
from services.stores.vectors.port import VectorStore

MAX_CANDIDATES = 10
"""Candidates for one new fact (04-resolve): more make a model's answers worse, not better."""
_LOOKED_AT = 100
"""Statements read for one new fact, of which at most MAX_CANDIDATES are worth asking about."""
MIN_COSINE = 0.75
_NEAR_EQUAL = 85
"""RapidFuzz ratio of two objects of a SINGLE slot from which they may be one thing written twice."""


@dataclass(frozen=True, slots=True)
class _Side:
    """A statement on either side of a pair."""

    statement: Statement
    target: str
    shown: KnownFact


@dataclass(frozen=True, slots=True)
class _Offered:
    """New statements and candidates, and the pairs of them, by position, that may be judged.

    `predicates` are the keys of the new ones' predicates.
    """

    new: Sequence[_Side] = ()
    candidates: Sequence[_Side] = ()
    pairs: Sequence[Pair] = ()
    predicates: Mapping[EntityId, str] = field(default_factory=dict)

    @property
    def keys(self) -> Sequence[StatementPair]:
        new, candidates = self.new, self.candidates
        return [(new[pair.new].statement.id, candidates[pair.candidate].statement.id) for pair in self.pairs]


@dataclass(frozen=True, slots=True)
class ToJudge:
    """What may be judged of a draft's facts and of the predicates that it uses first."""

    offered: _Offered
    likely: Likely

    @property
    def statement_keys(self) -> Sequence[StatementPair]:
        return self.offered.keys

    @property
    def predicate_keys(self) -> Sequence[PredicatePair]:
        return self.likely.names

    def task(self, setting: Setting) -> JudgeStatements | None:
        """None where there is nothing to ask."""
        offered, likely = self.offered, self.likely
        if not offered.pairs and not likely.pairs:
            return None
        return JudgeStatements(
            [side.shown for side in offered.new] if offered.pairs else (),
            [side.shown for side in offered.candidates],
            offered.pairs,
            setting,
            likely.new,
            likely.candidates,
            likely.pairs,
        )


@dataclass(frozen=True, slots=True)
class _AsRead:
    """How statements read with the draft: their nodes as what these are merged into or declared to be."""

    readings: Readings
    lexicon: Lexicon

    async def learn(self, statements: Iterable[Statement]) -> None:
        nodes = {node for one in statements for node in (one.subject, one.object)}
        await self.readings.learn(EntityId(node) for node in nodes if not isinstance(node, Literal))

    def entity(self, id: EntityId) -> EntityId:
        return self.readings.after.get(id, id)

    def slot(self, statement: Statement) -> NodePair:
        predicate = statement.predicate
        return self.entity(statement.subject), self.lexicon.merged.get(predicate, predicate)

    def object(self, statement: Statement) -> EntityId | Literal:
        target = statement.object
        return target if isinstance(target, Literal) else self.entity(target)

    def related(self, one: Statement, other: Statement) -> bool:
        """Whether two statements share a node that isn't a literal, and do not read as one anyway."""
        objects = self.object(one), self.object(other)
        if self.slot(one) == self.slot(other) and objects[0] == objects[1]:
            return False
        same_object = objects[0] == objects[1] and not isinstance(objects[0], Literal)
        return self.entity(one.subject) == self.entity(other.subject) or same_object


class Verdicts:
    """Drafts verdict records. Positions that the engine was not offered change nothing, nor does a
    contradiction between facts about different subjects.
    """

    def __init__(
        self,
        graph: GraphStore,
        vectors: VectorStore,
        embedder: Embedder,
        lexicons: Lexicons,
        readings: ReadingStore,
        text: TextStore,
        likening: Likening,
        now: Callable[[], Instant],
    ) -> None:
        self._graph = graph
        self._text = text
        self._vectors = vectors
        self._embedder = embedder
        self._lexicons = lexicons
        self._readings = readings
        self._likening = likening
        self._now = now

    async def find(
        self,
        scope: Scope,
        draft: Draft,
        known: Revision,
        supposed: Sequence[Draft] = (),
        leaving: Set[StatementId] = frozenset(),
    ) -> ToJudge:
        """What the draft tells first, beside candidates and each other. Raises EngineError of vectors.

        Which pairs are judged follows from what was said, not from what is believed just then: what hides a
        statement now may be deleted, and nobody is asked again. `supposed`: the draft with what may be judged
        of its names; pairs that matter only then are found too. `leaving`: nothing is compared with these.
        """
        lexicon = await self._lexicons.at(scope, known)
        likely = await self._likening.find(scope, draft, known, lexicon, leaving)
        fresh = _first_told(draft, await self._asserted(scope, draft))
        if not fresh:
            return ToJudge(_Offered(), likely)
        nodes = await self._nodes(scope, draft, fresh)
        new = [_Side(one, _target_name(one, nodes), KnownFact(one.fact)) for one in fresh]
        predicates = {one.predicate: nodes[one.predicate].key for one in fresh}
        near = await self._neighbours(scope, fresh)
        candidates: dict[StatementId, _Side] = {}
        pairs: dict[tuple[int, StatementId], None] = {}
        for each in (draft, *supposed):
            as_read = _AsRead(Readings(self._readings, scope, each), lexicon)
            await as_read.learn(fresh)
            for at, side in await self._pairs(scope, new, predicates, near, known, as_read, leaving):
                candidates.setdefault(side.statement.id, side)
                pairs.setdefault((at, side.statement.id))
        positions = {id: position for position, id in enumerate(candidates)}
        found = [Pair(at, positions[id]) for at, id in pairs]
        return ToJudge(_Offered(new, list(candidates.values()), found, predicates), likely)

    async def record(
        self,
        scope: Scope,
        draft: Draft,
        known: Revision,
        to_judge: ToJudge,
        setting: Setting,
        episode: EpisodeId,
        memo: Memo,
    ) -> None:
        """Drafts what was said of pairs that were offered and, as names now read, still matter."""
        offered = to_judge.offered
        as_read = _AsRead(Readings(self._readings, scope, draft), await self._lexicons.at(scope, known))
        await as_read.learn(side.statement for side in (*offered.new, *offered.candidates))
        pairs = dict(zip(offered.keys, offered.pairs, strict=True))
        for key, told in memo.statements.items():
            if told is None or key not in pairs:
                continue
            new, other = offered.new[pairs[key].new], offered.candidates[pairs[key].candidate]
            predicate = offered.predicates[new.statement.predicate]
            if as_read.related(other.statement, new.statement) and _worth_asking(
                new, other, predicate, as_read
            ):
                self._record(scope, draft, setting, episode, (new.statement, other.statement), told, as_read)
        await self._likening.record(scope, draft, to_judge.likely, memo, setting, episode, self._now())

    async def _asserted(self, scope: Scope, draft: Draft) -> frozenset[EpisodeId]:
        """Episodes that claim what the draft tells, and that no model was asked about: given as triples."""
        told = {claim.statement for claim in draft.claims.values()}
        said = {claim.source.episode for claim in draft.stored.claims if claim.statement in told}
        found = await self._text.episodes(scope, sorted(one for one in said if one)) if said else ()
        return frozenset(one.id for one in found if one.kind is EpisodeKind.ASSERTION)

    def _record(
        self,
        scope: Scope,
        draft: Draft,
        setting: Setting,
        episode: EpisodeId,
        pair: tuple[Statement, Statement],
        told: Told[PairVerdict],
        as_read: _AsRead,
    ) -> None:
        one, other = pair
        verdict, by = told.verdict, told.by
        subjects = {as_read.entity(one.subject), as_read.entity(other.subject)}
        if verdict.kind is VerdictKind.CONTRADICTS and len(subjects) == 2:
            return  # what one thing does says nothing of what another does
        left, right = sorted((one.id, other.id))
        made = RecordId(derive_id(scope, "verdict", left, right, int(verdict.kind), "model", episode))
        draft.verdicts[made] = Verdict(
            made,
            left,
            right,
            verdict.kind,
            Judge.MODEL,
            setting.reference_time,
            verdict.why,
            by.model or by.engine,
            by.prompt_version,
            episode,
            draft.revision,
        )
        why = verdict.kind.name.lower()
        decide(scope, draft, self._now(), Action.JUDGE, left, by_model(by, why), right)

    async def _nodes(
        self, scope: Scope, draft: Draft, statements: Sequence[Statement]
    ) -> Mapping[EntityId, Entity]:
        ids = {node for one in statements for node in (one.subject, one.predicate, one.object)}
        wanted = sorted(node for node in ids if isinstance(node, str))
        stored = {entity.id: entity for entity in await self._graph.entities(scope, wanted)}
        return stored | draft.entities

    async def _pairs(
        self,
        scope: Scope,
        new: Sequence[_Side],
        predicates: Mapping[EntityId, str],
        near: Sequence[Sequence[StatementId]],
        known: Revision,
        as_read: _AsRead,
        leaving: Set[StatementId],
    ) -> list[tuple[int, _Side]]:
        """New statements, by place, each with what it may be judged against."""
        candidates = await self._candidates(scope, [side.statement for side in new], near, as_read)
        ids = sorted({id for found in candidates for id in found} - leaving)
        views = {view.statement.id: view for view in await self._views(scope, ids, known)}
        hidden = await self._hidden(scope, list(views.values()))
        await as_read.learn(view.statement for view in views.values())
        pairs: list[tuple[int, _Side]] = []
        for at, side in enumerate(new):
            siblings = new[:at]
            known_ones = [
                _side_of(views[id], hidden.get(id))
                for id in candidates[at]
                if id in views and (views[id].spans or id in hidden)
            ]
            fitting = [
                (at, other)
                for other in (*siblings, *known_ones)
                if as_read.related(other.statement, side.statement)
                and _worth_asking(side, other, predicates[side.statement.predicate], as_read)
            ]
            pairs += fitting[:MAX_CANDIDATES]
        return pairs

    async def _views(
        self, scope: Scope, ids: Sequence[StatementId], known: Revision
    ) -> Sequence[StatementView]:
        return await self._graph.views(scope, ids, AsOf(known)) if ids else ()

    async def _hidden(self, scope: Scope, views: Sequence[StatementView]) -> Mapping[StatementId, Interval]:
        """Of what is claimed or ended but believed at no time, as it was said: when it began and stopped."""
        ids = [view.statement.id for view in views if not view.spans]
        if not ids:
            return {}
        records = await self._graph.records(scope, ids)
        starts: dict[StatementId, Instant] = {}
        for claim in records.claims:
            if claim.revoked_at is None:
                start = claim.attested_at if claim.start is None else claim.start
                starts[claim.statement] = min(start, starts.get(claim.statement, start))
        ends = {end.statement: end.at for end in records.ends if end.revoked_at is None}
        return {id: Interval(starts.get(id), ends.get(id)) for id in {*starts, *ends}}

    async def _candidates(
        self,
        scope: Scope,
        new: Sequence[Statement],
        near: Sequence[Sequence[StatementId]],
        as_read: _AsRead,
    ) -> list[list[StatementId]]:
        """Candidates of each statement, ended ones included, best first.

        Neighbours in its slot or between its nodes, then the rest of these, latest first, then others.
        """
        readings, lexicon = as_read.readings, as_read.lexicon
        slots = [_alike(readings, one.subject, lexicon.alike(one.predicate)) for one in new]
        ends = [
            []
            if isinstance(one.object, Literal)
            else _alike(readings, one.subject, readings.alike(one.object))
            for one in new
        ]
        in_slots = await self._graph.slots(scope, sorted({pair for pairs in slots for pair in pairs}))
        wanted = sorted({pair for pairs in ends for pair in pairs})
        between = await self._graph.between(scope, wanted) if wanted else {}
        found: list[list[StatementId]] = []
        for one, close, slot, pairs in zip(new, near, slots, ends, strict=True):
            same = [id for pair in slot for id in in_slots.get(pair, ())]
            same += [id for pair in pairs for id in between.get(pair, ())]
            members = set(same)
            ranked = [*(id for id in close if id in members), *reversed(same), *close]
            found.append([id for id in dict.fromkeys(ranked) if id != one.id][:_LOOKED_AT])
        return found

    async def _neighbours(self, scope: Scope, new: Sequence[Statement]) -> Sequence[Sequence[StatementId]]:
        vectors = await self._embedder.passages([one.fact for one in new])
        hits = await search_statements(self._vectors, scope, list(vectors), MAX_CANDIDATES)
        return [[StatementId(hit.id) for hit in found if hit.score >= MIN_COSINE] for found in hits]


def _alike(readings: Readings, subject: EntityId, others: Iterable[EntityId]) -> list[NodePair]:
    """The pairs of whatever reads as one with the subject and each of the others."""
    return [(one, other) for one in sorted(readings.alike(subject)) for other in sorted(others)]


def _worth_asking(new: _Side, other: _Side, predicate_key: str, as_read: _AsRead) -> bool:
    same_slot = as_read.slot(new.statement) == as_read.slot(other.statement)
    if same_slot and as_read.lexicon.cardinality(predicate_key) is Cardinality.SINGLE:
        return fuzz.ratio(new.target.casefold(), other.target.casefold()) >= _NEAR_EQUAL
    return True


def _first_told(draft: Draft, asserted: Collection[EpisodeId]) -> list[Statement]:
    """Statements that no claim supported before; and those that are ended here, of which nothing was known.

    Of the former an end or a denial may have been known, or a claim of an episode that was `asserted`.
    """
    statements = {one.id: one for one in draft.stored.statements} | draft.statements
    counting = [claim for claim in draft.stored.claims if claim.revoked_at is None]
    claimed = {claim.statement for claim in counting if claim.source.episode not in asserted}
    known = {claim.statement for claim in counting} | {
        end.statement for end in draft.stored.ends if end.revoked_at is None
    }
    told = [claim.statement for claim in draft.claims.values() if claim.statement not in claimed]
    told += [end.statement for end in draft.ends.values() if end.statement not in known]
    return [statements[id] for id in dict.fromkeys(told)]


def _target_name(statement: Statement, nodes: Mapping[EntityId, Entity]) -> str:
    target = statement.object
    return target.text if isinstance(target, Literal) else nodes[target].name


def _side_of(view: StatementView, said: Interval | None) -> _Side:
    """`said`: when what is not believed was said to hold."""
    target = view.statement.object
    name = target.text if isinstance(target, Literal) else (view.object.name if view.object else "")
    if said is None:
        said = Interval(view.spans[-1].valid_at, view.spans[-1].invalid_at)
    return _Side(view.statement, name, KnownFact(view.statement.fact, said.start, said.end))
