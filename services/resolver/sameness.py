"""Sameness: whether an entity that a chunk names first is a known one. Drafts merges; doubt keeps both."""

import asyncio
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from services.domain.beliefs import in_force
from services.domain.graph import Entity, EntityType, Literal
from services.domain.identity import Merge, MergeKind
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, derive_id
from services.domain.instants import Instant
from services.domain.likeness import Name, fuller, named_in
from services.domain.records import Judge
from services.domain.scope import Scope
from services.llm.port import Embedder
from services.llm.tasks import JudgeEntities, KnownFact, NamedEntity, Pair, Setting
from services.resolver.candidates import Candidates, Couple, Found, spelled_out_couples
from services.resolver.change import Draft
from services.resolver.coherence import Groups, Verdict, coherent
from services.resolver.memo import EntityPair, Memo
from services.stores.graph.port import AsOf, GraphStore
from services.stores.memory.groups import connected
from services.stores.memory.port import Decision, ReadingStore
from services.stores.vectors.port import VectorStore

MAX_ASKED = 24
"""Couples that a chunk asks a model about: more make its answers worse, not better."""
FACTS_SHOWN = 4
"""Of each side, the latest."""
_PASSAGES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a draft was made of, for those who judge it. `said` are the episode's passages."""

    episode: EpisodeId
    setting: Setting
    said: Sequence[str]


@dataclass(frozen=True, slots=True)
class Alike:
    """What may be one of what a draft names: by the text's own words, or in doubt, for the engine to say.

    `task` asks about the doubtful couples; `groups` is how their sides read before.
    """

    certain: Sequence[Verdict]
    doubtful: Sequence[Couple]
    groups: Groups
    task: JudgeEntities | None = None

    @property
    def keys(self) -> Sequence[EntityPair]:
        """The couples by their ids, in the order of the task's pairs."""
        return [(couple.new.id, couple.other.id) for couple in self.doubtful]


class Sameness:
    """Drafts SAME and APART records, each with its decision. What somebody judged is not asked again."""

    def __init__(
        self,
        graph: GraphStore,
        readings: ReadingStore,
        vectors: VectorStore,
        embedder: Embedder,
    ) -> None:
        self._graph = graph
        self._readings = readings
        self._candidates = Candidates(graph, vectors, embedder)

    async def find(
        self,
        scope: Scope,
        draft: Draft,
        known: Revision,
        chunk: Chunk,
        leaving: Set[EntityId] = frozenset(),
        back: Set[EntityId] = frozenset(),
    ) -> Alike | None:
        """Looks at what the draft names first; None where nothing is alike. Raises EngineError of vectors.

        `leaving`: nothing is compared with these. `back`: known ones that count as named first.
        """
        fresh = [one for one in draft.entities.values() if one.type is not EntityType.PREDICATE and one.name]
        older = await self._named_before(scope, draft)
        fresh += [one for one in older if one.id in back]
        older = [one for one in older if one.id not in back]
        certain = spelled_out_couples([*fresh, *older], chunk.said)
        spelled = {couple.ids for couple in certain}
        found = (await self._candidates.find(scope, fresh, older, known)).without(leaving)
        grey = [couple for couple in found.couples if couple.ids not in spelled]
        if not certain and not grey:
            return None
        sides = [side for couple in (*certain, *grey) for side in (couple.new, couple.other)]
        rivals = [one for couple in grey for one in found.rivals.get(couple.ids, ())]
        groups = await self._groups(scope, [*sides, *rivals], known)
        verdicts = [
            Verdict(couple, same=True, judge=Judge.RULE, why="the text spells it out")
            for couple in certain
            if groups.is_open(couple.new, couple.other)
        ]
        grey = [couple for couple in grey if groups.is_open(couple.new, couple.other)][:MAX_ASKED]
        if not grey:
            return Alike(verdicts, (), groups)
        task = await self._task(scope, draft, known, chunk, grey, _rivals(found, grey, groups))
        return Alike(verdicts, grey, groups, task)

    def record(
        self, scope: Scope, draft: Draft, alike: Alike, chunk: Chunk, now: Instant, memo: Memo
    ) -> None:
        """Drafts what is certain, and what was said of the couples that were offered."""
        couples = dict(zip(alike.keys, alike.doubtful, strict=True))
        verdicts = [*alike.certain]
        for key, told in memo.entities.items():
            if told is not None and key in couples:
                by, one = told.by, told.verdict
                model = by.model or by.engine
                verdicts.append(
                    Verdict(couples[key], one.same, Judge.MODEL, one.why, model, by.prompt_version)
                )
        for verdict in coherent(verdicts, alike.groups):
            _record(scope, draft, verdict, chunk, now)

    def supposed(self, scope: Scope, draft: Draft, alike: Alike, chunk: Chunk, now: Instant) -> Draft:
        """The draft as if all that may be one were: to find what is to be judged in that case."""
        supposed = replace(draft, merges=dict(draft.merges), decisions=list(draft.decisions))
        doubtful = [Verdict(couple, same=True, judge=Judge.MODEL, why="") for couple in alike.doubtful]
        for verdict in (*alike.certain, *doubtful):
            _record(scope, supposed, verdict, chunk, now)
        return supposed

    async def _named_before(self, scope: Scope, draft: Draft) -> list[Entity]:
        """Known entities that the draft's facts name."""
        statements = [*draft.statements.values(), *draft.stored.statements]
        sides = {side for one in statements for side in (one.subject, one.object)}
        ids = {side for side in sides if not isinstance(side, Literal) and side not in draft.entities}
        entities = await self._graph.entities(scope, sorted(ids)) if ids else ()
        return [one for one in entities if one.name and one.type is not EntityType.PREDICATE]

    async def _groups(self, scope: Scope, entities: Sequence[Entity], known: Revision) -> Groups:
        met = {one.id: one for one in entities}
        same = await connected(self._readings, scope, met)
        sides = met.keys() | {side for merge in same for side in (merge.entity, merge.into)}
        every = {merge.id: merge for merge in (*same, *await self._readings.merges(scope, sorted(sides)))}
        further = sorted(sides - met.keys())
        members = [*met.values(), *(await self._graph.entities(scope, further) if further else ())]
        return Groups(in_force(every.values(), known), members)

    async def _task(
        self,
        scope: Scope,
        draft: Draft,
        known: Revision,
        chunk: Chunk,
        couples: Sequence[Couple],
        rivals: Sequence[Entity],
    ) -> JudgeEntities:
        """`rivals`: entities that the engine should know of: a short name may mean these as well."""
        new, others, pairs = _positions(couples)
        here = {couple.other.id for couple in couples if couple.here}
        offered = {one.id for one in (*new, *others)}
        others += [one for one in rivals if one.id not in offered]
        facts = await self._facts(scope, draft, known, {one.id: one for one in (*new, *others)})
        return JudgeEntities(
            [NamedEntity(one.name, one.type, facts[one.id], here=True) for one in new],
            [NamedEntity(one.name, one.type, facts[one.id], one.id in here) for one in others],
            pairs,
            _passages(chunk.said, [*new, *others]),
            chunk.setting,
        )

    async def _facts(
        self, scope: Scope, draft: Draft, known: Revision, entities: Mapping[EntityId, Entity]
    ) -> dict[EntityId, list[KnownFact]]:
        """The latest facts of each: what the draft says, then what is known."""
        said = {
            id: [
                KnownFact(one.fact)
                for one in draft.statements.values()
                if one.fact and id in (one.subject, one.object)
            ]
            for id in entities
        }
        stored = [id for id in entities if id not in draft.entities]
        walks = await asyncio.gather(
            *(self._graph.walk(scope, [id], AsOf(known), 1, FACTS_SHOWN) for id in stored)
        )
        for id, steps in zip(stored, walks, strict=True):
            views = [step.view for step in steps if step.view.spans]
            said[id] += [
                KnownFact(view.statement.fact, view.spans[-1].valid_at, view.spans[-1].invalid_at)
                for view in views
            ]
        return {id: facts[:FACTS_SHOWN] for id, facts in said.items()}


def _rivals(found: Found, couples: Sequence[Couple], groups: Groups) -> list[Entity]:
    """Rivals of the couples, without those that nobody takes for either of the two any more."""
    rivals: dict[EntityId, Entity] = {}
    for couple in couples:
        for rival in found.rivals.get(couple.ids, ()):
            if all(groups.of(rival.id) != groups.of(id) for id in couple.ids) and any(
                groups.is_open(rival, side) for side in (couple.new, couple.other)
            ):
                rivals[rival.id] = rival
    return list(rivals.values())


def _positions(couples: Sequence[Couple]) -> tuple[list[Entity], list[Entity], list[Pair]]:
    """Both sides, each entity once, and the couples by their positions."""
    new = list({couple.new.id: couple.new for couple in couples}.values())
    others = list({couple.other.id: couple.other for couple in couples}.values())
    left = {one.id: at for at, one in enumerate(new)}
    right = {one.id: at for at, one in enumerate(others)}
    return new, others, [Pair(left[couple.new.id], right[couple.other.id]) for couple in couples]


def _passages(said: Sequence[str], entities: Sequence[Entity]) -> list[str]:
    """Passages that name one of the entities; all where none does so word for word."""
    names = [Name(one.name, one.type) for one in entities]
    telling = [text for text in said if any(named_in(text, name) for name in names)]
    return list(telling or said)[:_PASSAGES_SHOWN]


def _record(scope: Scope, draft: Draft, verdict: Verdict, chunk: Chunk, now: Instant) -> None:
    """The merge and its decision. The fuller name is kept, whichever came first."""
    one, other = verdict.couple.new, verdict.couple.other
    names = (Name(one.name, one.type), Name(other.name, other.type))
    into, entity = (one, other) if _leads(names, (one.id, other.id)) else (other, one)
    kind = MergeKind.SAME if verdict.same else MergeKind.APART
    parts = (entity.id, into.id, int(kind), int(verdict.judge), chunk.episode)
    made = RecordId(derive_id(scope, "merge", *parts))
    draft.merges[made] = Merge(
        made,
        entity.id,
        into.id,
        kind,
        verdict.judge,
        chunk.setting.reference_time,
        verdict.why,
        verdict.model,
        verdict.prompt_version,
        chunk.episode,
        draft.revision,
    )
    action = "merge_entities" if verdict.same else "keep_entities_apart"
    draft.decisions.append(
        Decision(
            derive_id(scope, "decision", action, made, draft.revision),
            draft.revision,
            now,
            action,
            entity.id,
            verdict.judge.name.lower(),
            f"{'reads as' if verdict.same else 'not'} {into.id}",  # the reason's own words lie in the merge
            verdict.model,
            verdict.prompt_version,
            other=into.id,
        )
    )


def _leads(names: tuple[Name, Name], ids: tuple[EntityId, EntityId]) -> bool:
    if fuller(names[0], names[1]) != fuller(names[1], names[0]):
        return fuller(names[0], names[1])
    return ids[0] > ids[1]
