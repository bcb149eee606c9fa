"""Lists and cards of memory: episodes, voice, entities. Each asks first that the graph is there."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from gateway.commands.differences import change_out, diff_in
from gateway.commands.reads import Place, named, typed
from gateway.convert.entities import card_out
from gateway.convert.episodes import episode_out
from gateway.convert.names import entity_type_in, voice_kind_in
from gateway.convert.recall import voice_out
from gateway.convert.times import instant_of, known_at_in
from gateway.errors import JobNotFound
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.job_view import JobView
from palimpsest.internal.v1 import recall_lists_pb2 as internal
from palimpsest.v1 import (
    common_pb2,
    episode_pb2,
    job_pb2,
    memory_entities_pb2,
    memory_episodes_pb2,
    memory_graph_pb2,
    memory_voice_pb2,
)
from services.domain.ids import JobId, Revision
from services.domain.instants import Instant
from services.domain.scope import Scope

MAX_PAGE = 500
JOBS_AT_ONCE = 8
"""Jobs that are read at the same time for the stages of one page of episodes."""


class Browsing:
    """Asks the recall service and shows its lists. Raises ServiceError, GraphNotFound first of all."""

    def __init__(self, services: Services, graphs: Graphs, view: JobView, now: Callable[[], Instant]) -> None:
        self._services = services
        self._graphs = graphs
        self._view = view
        self._now = now

    async def episodes(
        self,
        scope: Scope,
        request: memory_episodes_pb2.ListEpisodesRequest,
        place: Place,
        size: int,
        timeout_seconds: float,
    ) -> tuple[memory_episodes_pb2.ListEpisodesResponse, Place | None]:
        """A page, and where the next begins (None when there is no more)."""
        await self._graphs.check(scope)
        asked = internal.ListEpisodesRequest(
            session_id=request.session_id,
            document_id=request.document_id,
            source=request.source,
            held=request.quarantined,
            page_size=min(size, MAX_PAGE),
            after=place.after,
        )
        if request.HasField("reference_from"):
            asked.since = instant_of(request.reference_from)
        if request.HasField("reference_until"):
            asked.until = instant_of(request.reference_until)
        listed = await self._services.call(scope, self._services.recall.ListEpisodes, asked, timeout_seconds)
        page = memory_episodes_pb2.ListEpisodesResponse(
            episodes=[episode_out(episode, scope.graph) for episode in listed.episodes]
        )
        await self._stages(scope, page.episodes)
        return page, Place(listed.after, Revision(0), self._now()) if listed.after else None

    async def voice(
        self,
        scope: Scope,
        request: memory_voice_pb2.ListVoiceAspectsRequest,
        place: Place,
        size: int,
        timeout_seconds: float,
    ) -> tuple[memory_voice_pb2.ListVoiceAspectsResponse, Place | None]:
        """A page, and where the next begins. Raises RevisionNotReady."""
        await self._graphs.check(scope)
        now = self._now() if place.now is None else place.now
        asked = internal.ListVoiceAspectsRequest(
            kinds=[voice_kind_in(kind) for kind in request.kinds],
            episode_id=request.episode_id,
            known_at=place.known_at(request.known_at, timeout_seconds),
            include_ended=request.include_ended,
            page_size=min(size, MAX_PAGE),
            after=place.after,
            now=now,
        )
        if request.HasField("valid_at"):
            asked.valid_at = instant_of(request.valid_at)
        listed = await self._services.call(
            scope, self._services.recall.ListVoiceAspects, asked, timeout_seconds
        )
        page = memory_voice_pb2.ListVoiceAspectsResponse(
            voice_aspects=[voice_out(one, scope.graph) for one in listed.voice], revision=listed.revision
        )
        return page, Place(listed.after, Revision(listed.revision), now) if listed.after else None

    async def entity(
        self, scope: Scope, request: memory_entities_pb2.GetEntityRequest, timeout_seconds: float
    ) -> memory_entities_pb2.GetEntityResponse:
        """Raises EntityNotFound, RevisionNotReady."""
        await self._graphs.check(scope)
        asked = internal.ReadEntityRequest(
            entity=named(request.entity),
            type=typed(request.entity),
            known_at=known_at_in(request.known_at, timeout_seconds),
            now=self._now(),
        )
        read = await self._services.call(scope, self._services.recall.ReadEntity, asked, timeout_seconds)
        return memory_entities_pb2.GetEntityResponse(entity=card_out(read.entity), revision=read.revision)

    async def entities(
        self,
        scope: Scope,
        request: memory_entities_pb2.ListEntitiesRequest,
        place: Place,
        size: int,
        timeout_seconds: float,
    ) -> tuple[memory_entities_pb2.ListEntitiesResponse, Place | None]:
        """A page, and where the next begins."""
        await self._graphs.check(scope)
        now = self._now() if place.now is None else place.now
        asked = internal.ListEntitiesRequest(
            types=[entity_type_in(type) for type in request.types],
            name_prefix=request.name_prefix,
            include_merged=request.include_merged,
            known_at=place.known_at(common_pb2.KnownAt(), timeout_seconds),
            page_size=min(size, MAX_PAGE),
            after=place.after,
            now=now,
        )
        listed = await self._services.call(scope, self._services.recall.ListEntities, asked, timeout_seconds)
        page = memory_entities_pb2.ListEntitiesResponse(
            entities=[card_out(card) for card in listed.entities], revision=listed.revision
        )
        return page, Place(listed.after, Revision(listed.revision), now) if listed.after else None

    async def diff(
        self,
        scope: Scope,
        request: memory_graph_pb2.DiffGraphRequest,
        place: Place,
        size: int,
        timeout_seconds: float,
    ) -> tuple[memory_graph_pb2.DiffGraphResponse, Place | None]:
        """A page, and where the next begins. Raises ValidationFailed, RevisionNotReady."""
        await self._graphs.check(scope)
        asked = diff_in(request, place, timeout_seconds)
        asked.page_size, asked.after = min(size, MAX_PAGE), place.after
        read = await self._services.call(scope, self._services.recall.Diff, asked, timeout_seconds)
        page = memory_graph_pb2.DiffGraphResponse(
            changes=[change_out(change, scope.graph) for change in read.changes], revision=read.revision
        )
        return page, Place(read.after, Revision(read.revision), self._now()) if read.after else None

    async def _stages(self, scope: Scope, episodes: Iterable[episode_pb2.Episode]) -> None:
        """Tells of each episode how far its chunk has come; one that was imported has no job here."""
        shown = list(episodes)
        gate = asyncio.Semaphore(JOBS_AT_ONCE)

        async def chunks(job: str) -> tuple[str, Sequence[job_pb2.JobChunk]]:
            async with gate:
                try:
                    return job, (await self._view.read(scope.tenant, JobId(job))).chunks
                except JobNotFound:
                    return job, ()

        read = await asyncio.gather(*(chunks(job) for job in dict.fromkeys(one.job_id for one in shown)))
        known: Mapping[str, Sequence[job_pb2.JobChunk]] = dict(read)
        for episode in shown:
            show_stage(episode, known[episode.job_id])


def show_stage(episode: episode_pb2.Episode, chunks: Iterable[job_pb2.JobChunk]) -> None:
    """Sets how far an episode has come, as the chunks of its job tell."""
    for chunk in chunks:
        if chunk.episode_id == episode.episode_id:
            episode.stage, episode.nothing_reason = chunk.stage, chunk.nothing_reason
