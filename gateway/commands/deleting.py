"""DeleteEpisode, DeleteDocument: evidence is revoked, text goes, and what it had struck out holds again."""

import asyncio

from gateway.ingest.background import Background
from gateway.ingest.documents import Documents
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.requests import RequestName, Requests, fingerprint
from palimpsest.internal.v1 import preprocessor_pb2, recall_pb2, resolver_pb2
from palimpsest.v1 import memory_episodes_pb2
from services.domain.scope import Scope

METHOD = "MemoryService.DeleteEpisode"
DOCUMENT_METHOD = "MemoryService.DeleteDocument"


def deletion_counts(
    revoked: resolver_pb2.RevokeResponse, episodes: int, passages: int
) -> memory_episodes_pb2.DeletionCounts:
    """What a revocation took away and gave back, and the text that went with it."""
    return memory_episodes_pb2.DeletionCounts(
        episodes_deleted=episodes,
        claims_revoked=revoked.claims,
        ends_revoked=revoked.ends,
        denials_revoked=revoked.denials,
        passages_removed=passages,
        voice_aspects_removed=revoked.voice,
        statements_expired=len(revoked.outcome.statements_expired),
        statements_restored=len(revoked.outcome.statements_restored),
    )


class DeleteDocument:
    """Deletes a document, or one version of it, as one revision. Idempotent by request_id, and by itself."""

    def __init__(
        self,
        documents: Documents,
        graphs: Graphs,
        requests: Requests,
        background: Background,
    ) -> None:
        self._documents = documents
        self._graphs = graphs
        self._requests = requests
        self._background = background

    async def __call__(
        self, scope: Scope, request: memory_episodes_pb2.DeleteDocumentRequest, actor: str
    ) -> memory_episodes_pb2.DeleteDocumentResponse:
        """What went and what holds again. Raises GraphNotFound, DocumentNotFound, RequestIdReused."""
        await self._graphs.check(scope, writing=True)
        name = RequestName(
            scope.tenant, DOCUMENT_METHOD, request.request_id, fingerprint(request), scope.graph
        )

        async def work() -> bytes:
            gone, revoked = await self._documents.delete(
                scope, request.document_id, request.version, request.request_id, actor
            )
            return memory_episodes_pb2.DeleteDocumentResponse(
                revision=revoked.revision,
                counts=deletion_counts(revoked, gone.episodes, gone.passages),
            ).SerializeToString()

        # The caller may leave; a deletion that was begun is carried out all the same.
        answer, _ = await asyncio.shield(self._background.start(self._requests.once(name, work)))
        return memory_episodes_pb2.DeleteDocumentResponse.FromString(answer)


class DeleteEpisode:
    """Deletes one episode. Idempotent by request_id, and by itself."""

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        requests: Requests,
        background: Background,
        seconds: float,
    ) -> None:
        """`seconds` is how long each call to a service may take."""
        self._services = services
        self._graphs = graphs
        self._requests = requests
        self._background = background
        self._seconds = seconds

    async def __call__(
        self, scope: Scope, request: memory_episodes_pb2.DeleteEpisodeRequest, actor: str
    ) -> memory_episodes_pb2.DeleteEpisodeResponse:
        """What went and what holds again. Raises GraphNotFound, EpisodeNotFound, RequestIdReused."""
        await self._graphs.check(scope, writing=True)
        name = RequestName(scope.tenant, METHOD, request.request_id, fingerprint(request), scope.graph)

        async def work() -> bytes:
            return (await self._delete(scope, request, actor)).SerializeToString()

        # The caller may leave; a deletion that was begun is carried out all the same.
        answer, _ = await asyncio.shield(self._background.start(self._requests.once(name, work)))
        return memory_episodes_pb2.DeleteEpisodeResponse.FromString(answer)

    async def _delete(
        self, scope: Scope, request: memory_episodes_pb2.DeleteEpisodeRequest, actor: str
    ) -> memory_episodes_pb2.DeleteEpisodeResponse:
        services, episode, seconds = self._services, request.episode_id, self._seconds
        asked = recall_pb2.ReadEpisodeRequest(episode_id=episode)
        read = await services.call(scope, services.recall.ReadEpisode, asked, seconds)
        # The text first: whatever is about to be published of it then fails for want of it, or is revoked.
        text = preprocessor_pb2.DeleteEpisodeTextRequest(episode_id=episode)
        gone = await services.call(scope, services.preprocessor.DeleteEpisodeText, text, seconds)
        evidence = resolver_pb2.RevokeRequest(
            commit_id=request.request_id, episode_id=episode, actor=actor, why="deleted"
        )
        revoked = await services.call(scope, services.resolver.Revoke, evidence, seconds)
        return memory_episodes_pb2.DeleteEpisodeResponse(
            revision=revoked.revision,
            counts=deletion_counts(revoked, int(gone.deleted), len(read.episode.passages)),
            restored_statement_ids=revoked.outcome.statements_restored,
            expired_statement_ids=revoked.outcome.statements_expired,
        )
