"""Following: what is written once a graph has changed: labels, titles, summaries of sessions, the persona.

It goes by the graph's own log of revisions, from where it was last written to the newest. So it matters not
how often it is asked, or where it was cut short: it goes on from what is written, and what is made from the
same facts is not made again. It costs no credits (docs/summaries.md); what models cost is with the last job.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass, field

from google.protobuf.message import Message

from gateway.errors import JobNotFound
from gateway.ingest.receipts import stages_of
from gateway.policy import check_providers
from gateway.services import Services
from gateway.store.follow_ups import FollowUp
from gateway.store.graphs import Graphs
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from palimpsest.internal.v1 import summaries_pb2 as pb
from palimpsest.internal.v1 import values_pb2
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.errors import Conflict
from services.domain.ids import JobId
from services.domain.instants import Instant
from services.domain.memory import EpisodeKind

_ROUNDS = 5
"""How often a session is read again that was changed while it was written."""
_LAST = 1_000_000
"""Where these receipts stand among those of a job."""


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """How long calls may take, which models graphs may choose, who sees their text."""

    store_seconds: float = 60.0
    model_seconds: float = 600.0
    offered_models: Set[str] = field(default_factory=frozenset)
    providers: Set[str] = field(default_factory=frozenset)


class Following:
    """Brings what is written about a graph up to its newest revision. Idempotent. Raises ServiceError."""

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        jobs: Jobs,
        progress: Progress,
        now: Callable[[], Instant],
        settings: FollowSettings,
    ) -> None:
        self._services = services
        self._graphs = graphs
        self._jobs = jobs
        self._progress = progress
        self._now = now
        self._settings = settings

    async def __call__(self, asked: FollowUp) -> None:
        """Raises GraphNotFound, GraphBeingErased, EntityBeingErased; ModelNotAllowed where no model may."""
        scope = asked.scope
        settings = (await self._graphs.get(scope, writing=True)).settings
        check_providers(settings, self._settings.providers)
        setting = self._setting(settings)
        services, seconds = self._services, self._settings.store_seconds
        while True:
            read = pb.ReadChangesRequest()
            changes = await services.call(scope, services.recall.ReadChanges, read, seconds)
            if changes.nothing:
                break
            for session in changes.session_ids:
                await self._session(asked, session, setting)
            note = pb.NoteFollowedRequest(revision=changes.revision, generation=changes.generation)
            await services.call(scope, services.classifier.NoteFollowed, note, seconds)
            if not changes.more:
                break
        await self._persona(asked, setting)

    async def _session(self, asked: FollowUp, session: str, setting: values_pb2.Setting) -> None:
        services, scope = self._services, asked.scope

        async def once() -> None:
            gather = pb.GatherSessionRequest(session_id=session)
            gathered = await services.call(
                scope, services.recall.GatherSession, gather, self._settings.store_seconds
            )
            request = pb.SummariseRequest(session_id=session, facts=gathered.facts, setting=setting)
            made = await services.call(
                scope, services.classifier.Summarise, request, self._settings.model_seconds
            )
            await self._keep(asked, request, made.receipts)

        await _again(once)

    async def _persona(self, asked: FollowUp, setting: values_pb2.Setting) -> None:
        services, scope = self._services, asked.scope

        async def once() -> None:
            gather = pb.GatherPersonaRequest(user_name=setting.user_name, now=self._now())
            gathered = await services.call(
                scope, services.recall.GatherPersona, gather, self._settings.store_seconds
            )
            request = pb.UpdatePersonaRequest(facts=gathered.facts, setting=setting)
            made = await services.call(
                scope, services.classifier.UpdatePersona, request, self._settings.model_seconds
            )
            await self._keep(asked, request, made.receipts)

        await _again(once)

    async def _keep(self, asked: FollowUp, request: Message, receipts: Sequence[values_pb2.Receipt]) -> None:
        """With the job that made it due, if that is still there; once for the same facts."""
        if not receipts or not asked.job:
            return
        try:
            await self._jobs.find(JobId(asked.job))
        except JobNotFound:
            return
        step = hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()[:32]
        await self._progress.add_receipts(
            asked.job, f"follow/{step}", receipts[0].engine, stages_of(receipts), _LAST
        )

    def _setting(self, settings: GraphSettings) -> values_pb2.Setting:
        chosen, offered = settings.models, self._settings.offered_models
        return values_pb2.Setting(
            kind=EpisodeKind.ASSERTION,
            reference_time=self._now(),
            time_zone=settings.time_zone or "UTC",
            user_name=settings.user_name,
            languages=settings.languages,
            medium_model=chosen.medium_model if chosen.medium_model in offered else "",
            low_model=chosen.low_model if chosen.low_model in offered else "",
        )


async def _again(once: Callable[[], Awaitable[None]]) -> None:
    """Does what reads and then writes, again where the graph changed between the two. Raises Conflict."""
    for left in reversed(range(_ROUNDS)):
        try:
            await once()
        except Conflict:
            if not left:
                raise
        else:
            return
