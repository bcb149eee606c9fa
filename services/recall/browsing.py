"""Browsing: episodes and sentences of the voice by filter, page by page."""

from dataclasses import replace

from palimpsest.internal.v1 import recall_lists_pb2 as pb
from services.domain.errors import ValidationFailed, Violation
from services.domain.ids import DocumentId, EpisodeId, SessionId
from services.domain.instants import Instant
from services.domain.memory import VoiceKind
from services.domain.scope import Scope
from services.domain.voice import known_from
from services.recall.messages import episode_out, voice_out
from services.recall.parts import Parts
from services.recall.revisions import Revisions
from services.stores.memory.port import EpisodeFilter, VoiceFilter
from services.stores.paging import Page
from services.wire.fields import maybe

MAX_PAGE = 500
DEFAULT_PAGE = 50


class Browsing:
    """Lists what lies in the memory store."""

    def __init__(self, parts: Parts, revisions: Revisions) -> None:
        self._parts = parts
        self._revisions = revisions

    async def episodes(self, scope: Scope, request: pb.ListEpisodesRequest) -> pb.ListEpisodesResponse:
        """Raises ValidationFailed, StoreUnavailable."""
        where = EpisodeFilter(
            session=SessionId(request.session_id) if request.session_id else None,
            document=DocumentId(request.document_id) if request.document_id else None,
            source=request.source,
            since=maybe(request, "since"),
            until=maybe(request, "until"),
            held=request.held,
        )
        try:
            listed = await self._parts.text.latest_episodes(scope, where, _page(request))
        except ValueError as error:
            raise _no_token() from error
        return pb.ListEpisodesResponse(
            episodes=[episode_out(replace(episode, text=""), []) for episode in listed.items],
            after=listed.after,
        )

    async def voice(self, scope: Scope, request: pb.ListVoiceAspectsRequest) -> pb.ListVoiceAspectsResponse:
        """Raises ValidationFailed, RevisionNotReady, StoreUnavailable."""
        known = await self._revisions.known(scope, request.known_at)
        valid_at = maybe(request, "valid_at")
        now = None if request.include_ended else Instant(request.now)
        where = VoiceFilter(
            kinds=[_kind(name) for name in request.kinds],
            episode=EpisodeId(request.episode_id) if request.episode_id else None,
            held_at=now if valid_at is None else valid_at,
        )
        try:
            listed = await self._parts.voice.list_held(scope, where, known.at, _page(request))
        except ValueError as error:
            raise _no_token() from error
        begun = sorted({known_from(aspect, known.at) for aspect in listed.items})
        clocks = await self._parts.revisions.clocks(scope, begun)
        return pb.ListVoiceAspectsResponse(
            voice=[voice_out(aspect, known.at, clocks) for aspect in listed.items],
            after=listed.after,
            revision=known.at,
        )


def _page(request: pb.ListEpisodesRequest | pb.ListVoiceAspectsRequest) -> Page:
    size = min(request.page_size, MAX_PAGE) if request.page_size > 0 else DEFAULT_PAGE
    return Page(size, request.after)


def _no_token() -> ValidationFailed:
    return ValidationFailed(Violation("page_token", "not a token of this list"))


def _kind(name: str) -> VoiceKind:
    try:
        return VoiceKind(name)
    except ValueError as error:
        raise ValidationFailed(Violation("kinds", "not a kind of voice aspects")) from error
