"""Verdicts: how new statements stand to what is known. One engine call for all new facts of a chunk.

A SINGLE slot needs no verdict to compete; there only near-equal objects are asked about, as duplicates.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from services.domain.graph import Entity, Literal, Statement
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, StatementId, derive_id
from services.domain.instants import Instant
from services.domain.lexicon import Lexicon
from services.domain.predicates import Cardinality
from services.domain.records import Judge, Verdict, VerdictKind
from services.domain.scope import Scope
from services.llm.port import Answer, Embedder, Engine
from services.llm.tasks import Judged, JudgeStatements, KnownFact, Pair, Setting
from services.resolver.change import Draft
from services.resolver.deciding import Action, by_model, decide
from services.resolver.memo import Memo
from services.stores.graph.port import AsOf, GraphStore, StatementView
from services.stores.memory.lexicons import Lexicons
from services.stores.vectors.port import Collection, VectorStore

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


class Verdicts:
    """Drafts verdict records. Positions that the engine was not offered change nothing, nor does a
    contradiction between facts about different subjects.
    """

    def __init__(
        self,
        graph: GraphStore,
        vectors: VectorStore,
        embedder: Embedder,
        engine: Engine,
        lexicons: Lexicons,
        now: Callable[[], Instant],
    ) -> None:
        self._graph = graph
        self._vectors = vectors
        self._embedder = embedder
        self._engine = engine
        self._lexicons = lexicons
        self._now = now

    async def add(
        self, scope: Scope, draft: Draft, known: Revision, setting: Setting, episode: EpisodeId, memo: Memo
    ) -> None:
        """Judges what the draft tells first against candidates and each other. Raises EngineError."""
        fresh = _first_told(draft)
        if not fresh:
            return
        nodes = await self._nodes(scope, draft, fresh)
        new = [_Side(one, _target_name(one, nodes), KnownFact(one.fact)) for one in fresh]
        candidates, pairs = await self._pairs(scope, new, nodes, known)
        if not pairs:
            return
        key = tuple((new[pair.new].statement.id, candidates[pair.candidate].statement.id) for pair in pairs)
        if key not in memo.statements:
            task = JudgeStatements(
                [side.shown for side in new], [side.shown for side in candidates], pairs, setting
            )
            answer = await self._engine.judge_statements(scope, task)
            memo.statements[key] = answer
            memo.receipts.append(answer.receipt)
        self._record(scope, draft, setting, episode, (new, candidates, pairs), memo.statements[key])

    def _record(
        self,
        scope: Scope,
        draft: Draft,
        setting: Setting,
        episode: EpisodeId,
        offered: tuple[Sequence[_Side], Sequence[_Side], Sequence[Pair]],
        answer: Answer[Judged],
    ) -> None:
        new, candidates, pairs = offered
        open_pairs = set(pairs)
        by = answer.receipt
        for verdict in answer.value.verdicts:
            pair = Pair(verdict.new, verdict.candidate)
            if pair not in open_pairs:
                continue
            open_pairs.discard(pair)
            one, other = new[pair.new].statement, candidates[pair.candidate].statement
            if verdict.kind is VerdictKind.CONTRADICTS and one.subject != other.subject:
                continue  # what one thing does says nothing of what another does
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
        self, scope: Scope, new: Sequence[_Side], nodes: Mapping[EntityId, Entity], known: Revision
    ) -> tuple[list[_Side], list[Pair]]:
        candidates = await self._candidates(scope, [side.statement for side in new])
        ids = sorted({id for found in candidates for id in found})
        views = {view.statement.id: view for view in await self._views(scope, ids, known)}
        offered: list[_Side] = []
        positions: dict[StatementId, int] = {}
        pairs: list[Pair] = []
        lexicon = await self._lexicons.at(scope, known)
        for at, side in enumerate(new):
            siblings = [other for other in new[:at] if self._related(other.statement, side.statement)]
            known_ones = [_side_of(views[id]) for id in candidates[at] if id in views and views[id].spans]
            fitting = [
                other
                for other in (*siblings, *known_ones)
                if self._related(other.statement, side.statement)
                and _worth_asking(side, other, nodes[side.statement.predicate].key, lexicon)
            ]
            for other in fitting[:MAX_CANDIDATES]:
                if other.statement.id not in positions:
                    positions[other.statement.id] = len(offered)
                    offered.append(other)
                pairs.append(Pair(at, positions[other.statement.id]))
        return offered, pairs

    async def _views(
        self, scope: Scope, ids: Sequence[StatementId], known: Revision
    ) -> Sequence[StatementView]:
        return await self._graph.views(scope, ids, AsOf(known)) if ids else ()

    async def _candidates(self, scope: Scope, new: Sequence[Statement]) -> list[list[StatementId]]:
        """Candidates of each statement, ended ones included, best first.

        Neighbours in its slot or between its nodes, then the rest of these, latest first, then others.
        """
        near = await self._neighbours(scope, new)
        slots = await self._graph.slots(scope, sorted({(one.subject, one.predicate) for one in new}))
        ends = sorted({(one.subject, one.object) for one in new if not isinstance(one.object, Literal)})
        between = await self._graph.between(scope, ends) if ends else {}
        found: list[list[StatementId]] = []
        for one, close in zip(new, near, strict=True):
            same = list(slots.get((one.subject, one.predicate), ()))
            if not isinstance(one.object, Literal):
                same += between.get((one.subject, one.object), ())
            members = set(same)
            ranked = [*(id for id in close if id in members), *reversed(same), *close]
            found.append([id for id in dict.fromkeys(ranked) if id != one.id][:_LOOKED_AT])
        return found

    async def _neighbours(self, scope: Scope, new: Sequence[Statement]) -> Sequence[Sequence[StatementId]]:
        vectors = await self._embedder.passages([one.fact for one in new])
        hits = await self._vectors.search(scope, Collection.STATEMENTS, list(vectors), MAX_CANDIDATES)
        return [[StatementId(hit.id) for hit in found if hit.score >= MIN_COSINE] for found in hits]

    @staticmethod
    def _related(one: Statement, other: Statement) -> bool:
        same_object = one.object == other.object and not isinstance(one.object, Literal)
        return one.id != other.id and (one.subject == other.subject or same_object)


def _worth_asking(new: _Side, other: _Side, predicate_key: str, lexicon: Lexicon) -> bool:
    one, two = new.statement, other.statement
    read = [lexicon.merged.get(side.predicate, side.predicate) for side in (one, two)]
    same_slot = one.subject == two.subject and read[0] == read[1]
    if same_slot and lexicon.cardinality(predicate_key) is Cardinality.SINGLE:
        return fuzz.ratio(new.target.casefold(), other.target.casefold()) >= _NEAR_EQUAL
    return True


def _first_told(draft: Draft) -> list[Statement]:
    """Statements that no claim supported before; and those that are ended here, of which nothing was known.

    Of the former an end or a denial may have been known.
    """
    statements = {one.id: one for one in draft.stored.statements} | draft.statements
    claimed = {claim.statement for claim in draft.stored.claims if claim.revoked_at is None}
    known = claimed | {end.statement for end in draft.stored.ends if end.revoked_at is None}
    told = [claim.statement for claim in draft.claims.values() if claim.statement not in claimed]
    told += [end.statement for end in draft.ends.values() if end.statement not in known]
    return [statements[id] for id in dict.fromkeys(told)]


def _target_name(statement: Statement, nodes: Mapping[EntityId, Entity]) -> str:
    target = statement.object
    return target.text if isinstance(target, Literal) else nodes[target].name


def _side_of(view: StatementView) -> _Side:
    target = view.statement.object
    name = target.text if isinstance(target, Literal) else (view.object.name if view.object else "")
    last = view.spans[-1]
    return _Side(view.statement, name, KnownFact(view.statement.fact, last.valid_at, last.invalid_at))
