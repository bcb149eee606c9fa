"""Likening: whether a predicate that a chunk uses first is another word for a known one. Doubt keeps both.

Found by name alone, or by an embedding of the names and judged in the call that judges the chunk's facts.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from services.domain.beliefs import in_force
from services.domain.graph import EntityType
from services.domain.identity import Merge, MergeKind
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, StatementId, derive_id
from services.domain.instants import Instant
from services.domain.kernel.joined import Joined
from services.domain.lexicon import Lexicon, predicate_id
from services.domain.predicates import Vocabulary
from services.domain.records import Judge
from services.domain.scope import Scope
from services.domain.synonyms import plain, unlike
from services.llm.port import Embedder, Engine, Vectors
from services.llm.tasks import NamedPredicate, Pair, Setting
from services.resolver.change import Draft
from services.resolver.deciding import Action, By, by_model, decide
from services.resolver.memo import Memo
from services.resolver.naming import draft_predicates
from services.stores.graph.port import AsOf, GraphStore
from services.stores.memory.port import ReadingStore
from services.stores.vectors.moving import search_statements
from services.stores.vectors.port import Vector, VectorStore

MAX_ASKED = 8
"""New predicates of a chunk that a model is asked about."""
MAX_CANDIDATES = 5
"""For each of them."""
MIN_COSINE = 0.7
"""Of two names. Of the packaged embedder's, unrelated English ones seldom reach it."""
_NEAR_FACTS = 30
"""Neighbours of a fact whose predicates are compared, too: so what a graph uses is found without a scan."""
_ALIASES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Likely:
    """What was found of a draft's new predicates. `certain`: by name alone, what each is another word for.

    `new` and `candidates` are what an engine is shown, `pairs` what it may judge of them, by position.
    """

    certain: Mapping[str, str]
    new: Sequence[NamedPredicate] = ()
    candidates: Sequence[NamedPredicate] = ()
    pairs: Sequence[Pair] = ()

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """The pairs, by names."""
        return tuple((self.new[pair.new].name, self.candidates[pair.candidate].name) for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whether two predicates, by their keys, are one; who says so."""

    name: str
    other: str
    same: bool
    judge: Judge
    why: str = ""
    model: str = ""
    prompt_version: str = ""


@dataclass(frozen=True, slots=True)
class _Words:
    """Names to compare with: of each its canonical form, and of that a fact that uses it."""

    canonical: Mapping[str, str]
    facts: Mapping[str, str]


class Likening:
    """Drafts SYNONYM and DISTINCT records, each with its decision."""

    def __init__(
        self,
        graph: GraphStore,
        readings: ReadingStore,
        vectors: VectorStore,
        embedder: Embedder,
        engine: Engine,
        shipped: Vocabulary,
    ) -> None:
        self._graph = graph
        self._readings = readings
        self._vectors = vectors
        self._embedder = embedder
        self._engine = engine
        self._shipped = shipped
        self._known: dict[str, Vector] = {}
        """Vectors of the names that ship; of no others, which may be erased."""

    async def find(
        self,
        scope: Scope,
        draft: Draft,
        known: Revision,
        lexicon: Lexicon,
        leaving: Set[StatementId] = frozenset(),
    ) -> Likely:
        """Looks at the predicates that the draft uses first, beside those of facts other than `leaving`.

        Raises EngineError, StoreUnavailable.
        """
        used = {one.predicate for one in draft.statements.values()}
        fresh = [
            one.key
            for one in draft.entities.values()
            if one.type is EntityType.PREDICATE and one.id in used and not lexicon.knows(one.key)
        ]
        certain = {name: lexicon.known.canonical(plain(name)) for name in fresh if lexicon.knows(plain(name))}
        asked = [name for name in fresh if name not in certain][:MAX_ASKED]
        if not asked or not self._engine.judges_predicates:
            return Likely(certain)
        facts = self._facts(scope, draft, asked)
        words = await self._words(scope, facts, known, lexicon, leaving)
        near = await self._near(asked, words)
        judged = await self._judged(scope, asked, known)
        pairs = [
            (at, other)
            for at, name in enumerate(asked)
            for other in near[at]
            if frozenset(predicate_id(scope, one) for one in (name, other)) not in judged
        ]
        candidates = list(dict.fromkeys(other for _, other in pairs))
        return Likely(
            certain,
            [NamedPredicate(name, fact=facts[name]) for name in asked],
            [_shown(name, words) for name in candidates],
            [Pair(at, candidates.index(other)) for at, other in pairs],
        )

    async def record(
        self,
        scope: Scope,
        draft: Draft,
        likely: Likely,
        memo: Memo,
        setting: Setting,
        episode: EpisodeId,
        now: Instant,
    ) -> None:
        """Drafts what is certain, and what an engine says of pairs that it was offered; others say nothing.

        An answer that does not hold together joins nothing: see `coherent`.
        """
        opinions = [
            Opinion(name, other, same=True, judge=Judge.RULE, why="the same words")
            for name, other in likely.certain.items()
        ]
        fresh = {one.name for one in likely.new}
        opinions += coherent(_opinions(likely, memo), fresh)
        await draft_predicates(self._graph, scope, draft, sorted({one.other for one in opinions}))
        for one in opinions:
            _record(scope, draft, one, setting, episode, now)

    def _facts(self, scope: Scope, draft: Draft, asked: Sequence[str]) -> dict[str, str]:
        """Of each new predicate a fact that uses it."""
        ids = {predicate_id(scope, name): name for name in asked}
        told = [one for one in draft.statements.values() if one.predicate in ids]
        return {ids[one.predicate]: one.fact for one in reversed(told)}

    async def _words(
        self,
        scope: Scope,
        facts: Mapping[str, str],
        known: Revision,
        lexicon: Lexicon,
        leaving: Set[StatementId],
    ) -> _Words:
        """What ships and is declared; what facts like the new ones use; and the new ones themselves."""
        vectors = await self._embedder.passages(list(facts.values()))
        hits = await search_statements(self._vectors, scope, list(vectors), _NEAR_FACTS)
        ids = sorted({StatementId(hit.id) for found in hits for hit in found} - leaving)
        views = await self._graph.views(scope, ids, AsOf(known)) if ids else ()
        canonical = dict(lexicon.words)
        examples: dict[str, str] = {}
        for view in views:
            if key := view.predicate.key:
                canonical[key] = shown = lexicon.known.canonical(key)
                examples.setdefault(shown, view.statement.fact)
        return _Words(canonical | {name: name for name in facts}, examples | dict(facts))

    async def _near(self, asked: Sequence[str], words: _Words) -> list[list[str]]:
        """Of each new predicate the canonical forms whose names are near, nearest first.

        Of two new ones the later is compared with the earlier, not the other way round as well.
        """
        names = sorted(words.canonical)
        matrix = np.stack(await self._embedded(names))
        found: list[list[str]] = []
        for at, name in enumerate(asked):
            scores: dict[str, float] = {}
            later = set(asked[at:])
            for other, score in zip(names, matrix @ matrix[names.index(name)], strict=True):
                shown = words.canonical[other]
                if score >= MIN_COSINE and shown not in later and not unlike(name, other):
                    scores[shown] = max(float(score), scores.get(shown, -1.0))
            found.append(sorted(scores, key=lambda one: (-scores[one], one))[:MAX_CANDIDATES])
        return found

    async def _embedded(self, names: Sequence[str]) -> list[Vector]:
        missing = [name for name in names if name not in self._known]
        vectors: Vectors = await self._embedder.passages([name.replace("_", " ") for name in missing])
        made = dict(zip(missing, vectors, strict=True))
        shipped = self._shipped.names if made.keys() - self._known.keys() else set()
        self._known |= {name: vector for name, vector in made.items() if name in shipped}
        return [made[name] if name in made else self._known[name] for name in names]

    async def _judged(self, scope: Scope, asked: Sequence[str], known: Revision) -> set[frozenset[EntityId]]:
        """Couples that a record speaks of which counts: nobody is asked again."""
        merges = await self._readings.merges(scope, sorted(predicate_id(scope, name) for name in asked))
        return {frozenset((merge.entity, merge.into)) for merge in in_force(merges, known)}


def coherent(opinions: Sequence[Opinion], fresh: Iterable[str]) -> list[Opinion]:
    """The opinions that hold together; each that joins, with the name that its whole class reads as.

    A class must not hold two predicates that were known before, nor two that are told apart: else none of its
    joins counts. All read as the known one; of new ones alone as the shortest, whichever was said first.
    """
    new = set(fresh)
    joined: Joined[str] = Joined()
    for one in opinions:
        if one.same:
            joined.join(one.name, one.other)
    classes: dict[str, set[str]] = {}
    for one in opinions:
        if one.same:
            classes.setdefault(joined.root(one.name), set()).update((one.name, one.other))
    broken = {root for root, members in classes.items() if len(members - new) > 1}
    broken |= {joined.root(one.name) for one in opinions if not one.same and _as_one(joined, one)}
    kept = {f"{one.name} {one.other}": one for one in opinions if not one.same}
    for root in classes.keys() - broken:
        members = classes[root]
        leader = min(members - new or members, key=lambda name: (len(name), name))
        for name in members - {leader}:
            said = next(one for one in opinions if one.same and name in (one.name, one.other))
            kept[name] = Opinion(name, leader, True, said.judge, said.why, said.model, said.prompt_version)
    return [kept[key] for key in sorted(kept)]


def _as_one(joined: Joined[str], one: Opinion) -> bool:
    return joined.root(one.name) == joined.root(one.other)


def _opinions(likely: Likely, memo: Memo) -> list[Opinion]:
    """What was said of pairs that were offered."""
    offered = set(likely.names)
    found: list[Opinion] = []
    for names, told in memo.predicates.items():
        if told is not None and names in offered:
            by = by_model(told.by)
            verdict = told.verdict
            found.append(Opinion(*names, verdict.same, Judge.MODEL, verdict.why, by.model, by.prompt_version))
    return found


def _shown(name: str, words: _Words) -> NamedPredicate:
    others = sorted(other for other, canonical in words.canonical.items() if canonical == name != other)
    return NamedPredicate(name, others[:_ALIASES_SHOWN], words.facts.get(name, ""))


def _record(
    scope: Scope, draft: Draft, one: Opinion, setting: Setting, episode: EpisodeId, now: Instant
) -> None:
    name, other = predicate_id(scope, one.name), predicate_id(scope, one.other)
    kind = MergeKind.SYNONYM if one.same else MergeKind.DISTINCT
    made = RecordId(derive_id(scope, "merge", name, other, int(kind), int(one.judge), episode))
    draft.merges[made] = Merge(
        made,
        name,
        other,
        kind,
        one.judge,
        setting.reference_time,
        one.why,
        one.model,
        one.prompt_version,
        episode,
        draft.revision,
    )
    action = Action.MERGE_PREDICATES if one.same else Action.KEEP_PREDICATES_APART
    # The reason's own words lie in the merge, which forgets them with the episode.
    why = f"{'reads as' if one.same else 'not'} {other}"
    by = By(one.judge.name.lower(), why, one.model, one.prompt_version)
    decide(scope, draft, now, action, name, by, other)
