"""Rereading: which texts of a graph can be read again, and what of them their documents say no more."""

from palimpsest.internal.v1 import preprocessor_rereading_pb2 as pb
from services.domain.errors import EpisodeNotFound
from services.domain.ids import EpisodeId
from services.domain.memory import Episode, EpisodeKind
from services.domain.scope import Scope
from services.preprocessor.draft import is_silent
from services.preprocessor.relevance import why_nothing_in
from services.preprocessor.withdrawing import withdrawn
from services.stores.memory.port import TextStore
from services.stores.paging import Page

_PAGE = 200


class Rereading:
    """Reads texts; writes nothing."""

    def __init__(self, text: TextStore) -> None:
        self._text = text

    async def list(self, scope: Scope, request: pb.ListReadableRequest) -> pb.ListReadableResponse:
        """A page of them, in a stable order; it may be empty and not the last. Raises StoreUnavailable."""
        listed = await self._text.scan_episodes(scope, Page(request.page_size or _PAGE, request.after))
        answer = pb.ListReadableResponse(after=listed.after)
        for one in listed.items:
            if one.created_at <= request.until and _is_readable(one):
                passages = await self._text.passages_of(scope, one.id)
                answer.episodes.add(
                    episode_id=one.id,
                    tokens=one.tokens,
                    reference_time=one.reference_time,
                    nothing=why_nothing_in(one, passages, gate=request.relevance_gate),
                )
        return answer

    async def withdrawals(
        self, scope: Scope, request: pb.ListWithdrawalsRequest
    ) -> pb.ListWithdrawalsResponse:
        """Raises EpisodeNotFound for an episode that is not there, or deleted."""
        found = await self._text.episodes(scope, [EpisodeId(request.episode_id)])
        if not found or found[0].deleted_at is not None:
            raise EpisodeNotFound(request.episode_id)
        episode = found[0]
        if episode.document is None or episode.version is None:
            return pb.ListWithdrawalsResponse()
        passages = {one.id: one for one in await self._text.passages_of(scope, episode.id)}
        return pb.ListWithdrawalsResponse(
            withdrawals=await withdrawn(self._text, scope, episode.document, episode.version, passages)
        )


def _is_readable(episode: Episode) -> bool:
    given = episode.kind is EpisodeKind.ASSERTION or is_silent(episode)
    return not given and episode.deleted_at is None and episode.unlearned_at is None and not episode.held
