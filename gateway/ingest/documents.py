"""Deleting documents: the text of a version, or of all, and then what its episodes said, as one revision."""

from collections.abc import Sequence

from gateway.services import Services
from palimpsest.internal.v1 import preprocessor_pb2, resolver_pb2
from services.domain.scope import Scope

DELETE_DOCUMENT = "delete_document"
DELETE_VERSION = "delete_document_version"
"""Actions, as the log of decisions names them."""


class Documents:
    """Deletes documents and episodes. Idempotent: what was cut short is completed by a repeated call.

    Text goes first: whatever is about to be published of it then fails for want of it, or is revoked.
    """

    def __init__(self, services: Services, store_seconds: float, model_seconds: float) -> None:
        """How long a call to a service may take; one that revokes may embed sentences that are told anew."""
        self._services = services
        self._store_seconds = store_seconds
        self._model_seconds = model_seconds

    async def delete(
        self, scope: Scope, document: str, version: int, commit_id: str, actor: str, why: str = "deleted"
    ) -> tuple[preprocessor_pb2.DeleteDocumentTextResponse, resolver_pb2.RevokeResponse]:
        """A version, or all for 0. Raises DocumentNotFound for one that never was."""
        text = preprocessor_pb2.DeleteDocumentTextRequest(document_id=document, version=version)
        services = self._services
        gone = await services.call(scope, services.preprocessor.DeleteDocumentText, text, self._model_seconds)
        evidence = resolver_pb2.RevokeRequest(
            commit_id=commit_id,
            episode_ids=gone.episode_ids,
            withdrawals=gone.withdrawals,
            actor=actor,
            why=why,
            action=DELETE_VERSION if version else DELETE_DOCUMENT,
            target=f"{document}@{version}" if version else document,
        )
        return gone, await services.call(scope, services.resolver.Revoke, evidence, self._model_seconds)

    async def delete_episodes(
        self, scope: Scope, episodes: Sequence[str], commit_id: str, actor: str, why: str
    ) -> resolver_pb2.RevokeResponse:
        """Several episodes as one revision. Raises EpisodeNotFound for one that never was."""
        services = self._services
        text = preprocessor_pb2.DeleteEpisodeTextsRequest(episode_ids=episodes)
        await services.call(scope, services.preprocessor.DeleteEpisodeTexts, text, self._store_seconds)
        evidence = resolver_pb2.RevokeRequest(commit_id=commit_id, episode_ids=episodes, actor=actor, why=why)
        return await services.call(scope, services.resolver.Revoke, evidence, self._model_seconds)

    async def of_source(
        self, scope: Scope, source: str, limit: int
    ) -> Sequence[preprocessor_pb2.SourceEpisode]:
        """The first episodes of a source that are still there."""
        asked = preprocessor_pb2.ListSourceRequest(source=source, limit=limit)
        listed = await self._services.call(
            scope, self._services.preprocessor.ListSource, asked, self._store_seconds
        )
        return listed.episodes
