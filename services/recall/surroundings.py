"""Surroundings: what an episode is understood with: its session, similar passages, similar facts."""

from collections.abc import Mapping, Sequence

import numpy as np

from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EpisodeNotFound
from services.domain.graph import EntityType
from services.domain.ids import EpisodeId, PassageId, Revision, StatementId
from services.domain.memory import Episode, EpisodeKind, Passage
from services.domain.scope import Scope
from services.llm.port import Vectors
from services.llm.tasks import KnownFact
from services.recall.care import at_once
from services.recall.named import named_in, predicates_in
from services.recall.parts import Parts
from services.recall.readings import Readings, shown_as
from services.recall.seeds import Names
from services.stores.graph.port import AsOf, StatementView
from services.stores.memory.lexicons import Lexicons
from services.stores.vectors.port import Collection
from services.wire.facts import known_out, turn_of

RECENT = 5
SIMILAR = 5
FACTS = 10
LIKE = 0.75
"""The least cosine of what counts as similar."""
SEARCHED = 12
"""Hits read for each passage, so that enough are left without the episode's own."""
DECLARED = 50
"""Predicates of the tenant's own that are offered, by name, before those of similar facts."""
MAX_TURNS = 64
"""Turns of an episode that are searched by; a chunk has seldom more."""


class Surroundings:
    """Gathers the context of an episode."""

    def __init__(self, parts: Parts, readings: Readings, lexicons: Lexicons) -> None:
        self._lexicons = lexicons
        self._parts = parts
        self._readings = readings
        self._names = Names(parts.graph, readings)

    async def gather(self, scope: Scope, request: pb.GatherContextRequest) -> pb.GatherContextResponse:
        """Raises EpisodeNotFound, StoreUnavailable, EngineError."""
        found = await self._parts.text.episodes(scope, [EpisodeId(request.episode_id)])
        if not found or found[0].deleted_at is not None:
            raise EpisodeNotFound(request.episode_id)
        episode = found[0]
        passages = await self._parts.text.passages_of(scope, episode.id)
        current = await self._parts.revisions.current(scope)
        texts = [passage.with_speaker for passage in passages if passage.text.strip()]
        async with at_once() as group:
            recent = group.create_task(self._recent(scope, episode))
            declared = group.create_task(self._lexicons.at(scope, current))
            like = group.create_task(self._like(scope, episode, passages, current, anew=request.anew))
            named = group.create_task(named_in(self._names, scope, texts, current))
        similar, facts = like.result()
        entities, also = named.result()
        lexicon = declared.result()
        setting = values.Setting(
            kind=episode.kind,
            reference_time=episode.reference_time,
            source=episode.source,
            heading=episode.heading,
            recent=recent.result(),
            similar=similar,
            known_facts=[_known(view) for view in facts],
            known_entities=list(dict.fromkeys([*(one.name for one in entities), *_entities(facts)])),
            known_names=[values.KnownName(name=entity.name, also=other) for other, entity in also],
            known_predicates=list(
                dict.fromkeys(
                    [
                        *sorted(lexicon.declared)[:DECLARED],
                        *predicates_in(texts, lexicon),
                        *(view.predicate.name for view in facts),
                    ]
                )
            ),
        )
        turns = [turn_of(passage, episode.reference_time) for passage in passages]
        return pb.GatherContextResponse(turns=turns, setting=setting)

    async def _recent(self, scope: Scope, episode: Episode) -> list[str]:
        """The latest texts of the session before this one, newest first: those of its own job, then others.

        What was said a chunk ago is what "she" in this one means, also where the session has no name.
        """
        if episode.session is None and episode.kind is not EpisodeKind.CONVERSATION:
            return []
        earlier: list[Episode] = []
        if episode.position:
            together = await self._parts.text.episodes_of_job(scope, episode.job)
            earlier = [one for one in reversed(together) if one.position < episode.position]
        if episode.session is not None:
            earlier += await self._parts.text.recent(scope, episode.session, episode.created_at, RECENT + 1)
        return [one.text for one in earlier if one.text and one.deleted_at is None and not one.held][:RECENT]

    async def _like(
        self, scope: Scope, episode: Episode, passages: Sequence[Passage], current: Revision, *, anew: bool
    ) -> tuple[list[str], list[StatementView]]:
        said = [passage for passage in passages if passage.text.strip()][:MAX_TURNS]
        if not said:
            return [], []
        vectors = await self._vectors(scope, said)
        async with at_once() as group:
            similar = group.create_task(self._similar(scope, episode, vectors))
            facts = group.create_task(self._facts(scope, vectors, current, episode.id if anew else None))
        return similar.result(), facts.result()

    async def _vectors(self, scope: Scope, passages: Sequence[Passage]) -> Vectors:
        """Those that lie beside the passages; what has none there is embedded."""
        ids = [passage.id for passage in passages]
        there = await self._parts.vectors.fetch(scope, Collection.PASSAGES, ids)
        missing = [passage for passage in passages if passage.id not in there]
        made = iter(
            await self._parts.embedder.passages([one.with_speaker for one in missing]) if missing else ()
        )
        rows = [there[one.id].vector if one.id in there else next(made) for one in passages]
        return np.stack(rows)

    async def _similar(self, scope: Scope, episode: Episode, vectors: Vectors) -> list[str]:
        limit = SEARCHED + MAX_TURNS  # the episode's own passages are its nearest
        scores = await self._nearest(scope, Collection.PASSAGES, vectors, limit)
        passages = await self._parts.text.passages(scope, [PassageId(id) for id in scores])
        others = [passage for passage in passages if passage.episode != episode.id]
        others.sort(key=lambda passage: (-scores[passage.id], passage.id))
        return list(dict.fromkeys(passage.text for passage in others))[:SIMILAR]

    async def _facts(
        self, scope: Scope, vectors: Vectors, current: Revision, but: EpisodeId | None
    ) -> list[StatementView]:
        """Similar facts that are believed, ended ones included, so that order of arrival decides nothing.

        `but`: without those that only this episode tells.
        """
        scores = await self._nearest(scope, Collection.STATEMENTS, vectors, SEARCHED)
        views = await self._parts.graph.views(scope, [StatementId(id) for id in scores], AsOf(current))
        believed = [view for view in views if view.spans and view.statement.fact]
        believed = [view for view in believed if but is None or set(view.episodes) - {but}]
        believed.sort(key=lambda view: (-scores[view.statement.id], view.statement.id))
        reads = await self._readings.of(scope, current)
        return await shown_as(self._parts.graph, scope, believed[:FACTS], reads)

    async def _nearest(
        self, scope: Scope, collection: Collection, vectors: Vectors, limit: int
    ) -> Mapping[str, float]:
        """The best cosine of each row that is like one of the vectors."""
        found = await self._parts.vectors.search(scope, collection, list(vectors), limit)
        scores: dict[str, float] = {}
        for hit in (hit for hits in found for hit in hits):
            if hit.score >= LIKE:
                scores[hit.id] = max(hit.score, scores.get(hit.id, hit.score))
        return scores


def _known(view: StatementView) -> values.KnownFact:
    latest = view.spans[-1]
    source = view.episodes[0] if view.episodes else ""
    known = known_out(KnownFact(view.statement.fact, latest.valid_at, latest.invalid_at, source))
    known.statement_id = view.statement.id
    return known


def _entities(facts: Sequence[StatementView]) -> list[str]:
    nodes = [node for view in facts for node in (view.subject, view.object) if node is not None]
    return list(dict.fromkeys(node.name for node in nodes if node.type is not EntityType.PREDICATE))
