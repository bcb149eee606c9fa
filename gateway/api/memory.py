"""MemoryService: from a call to a command and back."""

from gateway.api.browsing import BrowsingServicer, Context
from gateway.api.judging import JudgingServicer
from gateway.api.merging import MergingServicer
from gateway.commands.archiving import RestoreArchived
from gateway.commands.asserting import AssertTriples
from gateway.commands.batching import BatchAddEpisodes
from gateway.commands.browsing import Browsing, show_stage
from gateway.commands.deleting import DeleteDocument, DeleteEpisode
from gateway.commands.ingesting import AddEpisode, IngestLimits
from gateway.commands.judging import Judging
from gateway.commands.merging import Merging
from gateway.commands.reads import Place, Reads
from gateway.commands.rebuilding import RebuildGraph
from gateway.commands.retracting import RetractSource
from gateway.errors import JobNotFound
from gateway.interceptors.call import Caller, current_caller, downstream_seconds
from gateway.interceptors.places import leave_place
from gateway.paging import page_of, token_of
from gateway.policy import TextPolicy
from gateway.settings import GatewaySettings
from gateway.store.job_view import JobView
from palimpsest.v1 import (
    memory_episodes_pb2,
    memory_graph_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
)
from services.domain.ids import JobId


class MemoryServicer(BrowsingServicer, JudgingServicer, MergingServicer):
    """Takes in, deletes, and reads episodes, documents and statements; with the lists."""

    def __init__(
        self,
        add: AddEpisode,
        batch: BatchAddEpisodes,
        asserting: AssertTriples,
        deleting: DeleteEpisode,
        deleting_documents: DeleteDocument,
        retract: RetractSource,
        rebuild: RebuildGraph,
        restore_archived: RestoreArchived,
        reads: Reads,
        judging: Judging,
        browsing: Browsing,
        merging: Merging,
        view: JobView,
        policy: TextPolicy,
        settings: GatewaySettings,
    ) -> None:
        super().__init__(browsing)
        self._merging = merging
        self._policy = policy
        self._add = add
        self._batch = batch
        self._assert = asserting
        self._delete = deleting
        self._delete_document = deleting_documents
        self._retract = retract
        self._rebuild = rebuild
        self._restore_archived = restore_archived
        self._reads = reads
        self._judging = judging
        self._view = view
        self._settings = settings

    async def AddEpisode(
        self, request: memory_ingest_pb2.AddEpisodeRequest, context: Context
    ) -> memory_ingest_pb2.AddEpisodeResponse:
        caller = current_caller()
        scope, limits = caller.scope(request.graph_id), self._ingest_limits(caller)
        return await self._add(scope, request, limits, downstream_seconds(caller), leave_place)

    async def BatchAddEpisodes(
        self, request: memory_ingest_pb2.BatchAddEpisodesRequest, context: Context
    ) -> memory_ingest_pb2.BatchAddEpisodesResponse:
        caller = current_caller()
        limits, seconds = self._ingest_limits(caller), downstream_seconds(caller)
        return await self._batch(request, caller.scope, limits, seconds, leave_place)

    async def AssertTriples(
        self, request: memory_ingest_pb2.AssertTriplesRequest, context: Context
    ) -> memory_ingest_pb2.AssertTriplesResponse:
        caller = current_caller()
        return await self._assert(caller.scope(request.graph_id), request, self._max_jobs(caller))

    async def DeleteEpisode(
        self, request: memory_episodes_pb2.DeleteEpisodeRequest, context: Context
    ) -> memory_episodes_pb2.DeleteEpisodeResponse:
        caller = current_caller()
        return await self._delete(caller.scope(request.graph_id), request, caller.actor)

    async def DeleteDocument(
        self, request: memory_episodes_pb2.DeleteDocumentRequest, context: Context
    ) -> memory_episodes_pb2.DeleteDocumentResponse:
        caller = current_caller()
        return await self._delete_document(caller.scope(request.graph_id), request, f"key:{caller.key}")

    async def RetractSource(
        self, request: memory_episodes_pb2.RetractSourceRequest, context: Context
    ) -> memory_episodes_pb2.RetractSourceResponse:
        caller = current_caller()
        scope, actor = caller.scope(request.graph_id), f"key:{caller.key}"
        return await self._retract(scope, request, actor, self._max_jobs(caller))

    async def RestoreArchived(
        self, request: memory_graph_pb2.RestoreArchivedRequest, context: Context
    ) -> memory_graph_pb2.RestoreArchivedResponse:
        caller = current_caller()
        return await self._restore_archived(caller.scope(request.graph_id), request, caller.actor)

    async def RebuildGraph(
        self, request: memory_graph_pb2.RebuildGraphRequest, context: Context
    ) -> memory_graph_pb2.RebuildGraphResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        asked = await self._policy(scope, request)
        return await self._rebuild(
            scope, asked, f"key:{caller.key}", self._max_jobs(caller), downstream_seconds(caller)
        )

    async def GetDocument(
        self, request: memory_episodes_pb2.GetDocumentRequest, context: Context
    ) -> memory_episodes_pb2.GetDocumentResponse:
        caller = current_caller()
        return await self._reads.document(caller.scope(request.graph_id), request, downstream_seconds(caller))

    async def GetEpisode(
        self, request: memory_episodes_pb2.GetEpisodeRequest, context: Context
    ) -> memory_episodes_pb2.GetEpisodeResponse:
        caller = current_caller()
        response = await self._reads.episode(
            caller.scope(request.graph_id), request, downstream_seconds(caller)
        )
        try:
            job = await self._view.read(caller.tenant, JobId(response.episode.job_id))
        except JobNotFound:
            # Its graph was imported: jobs stay where they were done.
            return response
        show_stage(response.episode, job.chunks)
        return response

    async def GetStatement(
        self, request: memory_statements_pb2.GetStatementRequest, context: Context
    ) -> memory_statements_pb2.GetStatementResponse:
        caller = current_caller()
        return await self._reads.statement(
            caller.scope(request.graph_id), request, downstream_seconds(caller)
        )

    async def ListStatements(
        self, request: memory_statements_pb2.ListStatementsRequest, context: Context
    ) -> memory_statements_pb2.ListStatementsResponse:
        caller = current_caller()
        place = Place.of(page_of(caller.tenant, request).after)
        page, following = await self._reads.statements(
            caller.scope(request.graph_id), request, place, downstream_seconds(caller)
        )
        page.next_page_token = token_of(caller.tenant, request, following.text if following else "")
        return page

    async def GetTimeline(
        self, request: memory_statements_pb2.GetTimelineRequest, context: Context
    ) -> memory_statements_pb2.GetTimelineResponse:
        caller = current_caller()
        asked = page_of(caller.tenant, request)
        page, following = await self._reads.timeline(
            caller.scope(request.graph_id),
            request,
            Place.of(asked.after),
            asked.size,
            downstream_seconds(caller),
        )
        page.next_page_token = token_of(caller.tenant, request, following.text if following else "")
        return page

    def _ingest_limits(self, caller: Caller) -> IngestLimits:
        return IngestLimits(self._settings.max_document_bytes, self._max_jobs(caller))

    def _max_jobs(self, caller: Caller) -> int:
        return caller.limits.over(self._settings.tenant_limits).max_jobs
