"""What follows ingests, for callers: persona, labels, summaries of sessions; and edits of the persona."""

import asyncio
from collections import Counter
from collections.abc import Callable

from gateway.commands.reads import Place
from gateway.convert.summaries import persona_out, section_in, summary_out
from gateway.errors import ValidationFailed, Violation
from gateway.ingest.background import Background
from gateway.services import Services
from gateway.store.follow_ups import FollowUps
from gateway.store.graphs import Graphs
from palimpsest.internal.v1 import summaries_pb2 as internal
from palimpsest.v1 import recall_summaries_pb2 as pb
from services.domain.errors import PersonaNotFound
from services.domain.instants import Instant
from services.domain.scope import Scope


class Summaries:
    """Asks the recall service, and the classifier for edits. Raises GraphNotFound first of all."""

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        follow_ups: FollowUps,
        background: Background,
        seconds: float,
        now: Callable[[], Instant],
    ) -> None:
        """`seconds` is how long an edit may take."""
        self._services = services
        self._graphs = graphs
        self._follow_ups = follow_ups
        self._background = background
        self._seconds = seconds
        self._now = now

    async def persona(
        self, scope: Scope, request: pb.GetPersonaRequest, timeout_seconds: float
    ) -> pb.GetPersonaResponse:
        """What of it still stands. Raises PersonaNotFound while there is none."""
        del request  # it names nothing but the graph
        await self._graphs.check(scope)
        return pb.GetPersonaResponse(persona=await self._persona(scope, timeout_seconds))

    async def update_persona(
        self, scope: Scope, request: pb.UpdatePersonaRequest, actor: str
    ) -> pb.UpdatePersonaResponse:
        """The persona as it is now. Idempotent. Raises Conflict, ValidationFailed."""
        named = Counter(section.section_id for section in request.sections)
        if twice := [id for id, count in named.items() if count > 1]:
            raise ValidationFailed(Violation("sections", f"name {twice[0]!r} twice", "persona.unique"))
        await self._graphs.check(scope, writing=True)
        asked = internal.EditPersonaRequest(
            sections=map(section_in, request.sections),
            expected_version=request.expected_version,
            actor=actor,
        )
        # The caller may leave; an edit that was begun is carried out all the same.
        version = await asyncio.shield(self._background.start(self._edit(scope, asked)))
        try:
            persona = await self._persona(scope, self._seconds)
        except PersonaNotFound:
            # Its only sections were given back, and are about to be written.
            persona = pb.Persona(graph_id=scope.graph, version=version)
        return pb.UpdatePersonaResponse(persona=persona)

    async def labels(
        self, scope: Scope, request: pb.ListLabelsRequest, place: Place, size: int, timeout_seconds: float
    ) -> tuple[pb.ListLabelsResponse, Place | None]:
        """A page, most used first, and where the next begins."""
        del request
        await self._graphs.check(scope)
        asked = internal.ListLabelsRequest(page_size=size, skip=place.number)
        listed = await self._services.call(scope, self._services.recall.ListLabels, asked, timeout_seconds)
        page = pb.ListLabelsResponse(
            labels=[pb.Label(name=one.name, session_count=one.sessions) for one in listed.labels]
        )
        following = str(place.number + size)
        return page, Place(following, place.revision, place.now) if listed.more else None

    async def session(
        self, scope: Scope, request: pb.GetSessionSummaryRequest, timeout_seconds: float
    ) -> pb.GetSessionSummaryResponse:
        """Empty until it is written. Raises SessionNotFound."""
        await self._graphs.check(scope)
        asked = internal.ReadSessionRequest(session_id=request.session_id)
        read = await self._services.call(scope, self._services.recall.ReadSession, asked, timeout_seconds)
        return pb.GetSessionSummaryResponse(summary=summary_out(read.summary, scope.graph))

    async def _edit(self, scope: Scope, asked: internal.EditPersonaRequest) -> int:
        services = self._services
        edited = await services.call(scope, services.classifier.EditPersona, asked, self._seconds)
        if not all(section.protected for section in asked.sections):
            await self._follow_ups.want(scope)
        return edited.version

    async def _persona(self, scope: Scope, seconds: float) -> pb.Persona:
        asked = internal.ReadPersonaRequest(now=self._now())
        read = await self._services.call(scope, self._services.recall.ReadPersona, asked, seconds)
        return persona_out(read.persona, scope.graph)
