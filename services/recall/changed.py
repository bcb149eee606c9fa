"""Changed: which sessions are to be written anew, read off the log of revisions since all was last written.

The log has what each revision changed, whoever asked for it: a text, a deletion, a user. So nothing that was
published is skipped, whatever happened to those who were told of it.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from palimpsest.internal.v1 import summaries_pb2 as pb
from services.domain.ids import EpisodeId, SessionId, StatementId, VoiceId
from services.domain.scope import Scope
from services.recall.parts import Parts
from services.stores.graph.port import AsOf
from services.stores.memory.commits import read_episode
from services.stores.memory.port import RevisionEntry

MAX_REVISIONS = 200
"""Looked at together."""
_STATEMENTS = (
    "statements_added",
    "statements_ended",
    "statements_restored",
    "statements_expired",
    "statements_moved",
)
_VOICE = ("voice_added", "voice_ended", "voice_moved")


class Changed:
    """Reads what changed."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def since_written(self, scope: Scope, request: pb.ReadChangesRequest) -> pb.ReadChangesResponse:
        """Sessions with a text, or with evidence for a fact, of these revisions, or that cite such a fact.

        Raises StoreUnavailable.
        """
        head = await self._parts.revisions.head(scope)
        written = await self._parts.summaries.followed(scope)
        if written >= head.current:
            return pb.ReadChangesResponse(revision=written, nothing=True, generation=head.generation)
        limit = request.max_revisions or MAX_REVISIONS
        entries = await self._parts.revisions.since(scope, written, limit)
        upto = entries[-1].revision if entries else head.current
        sessions = await self._sessions(scope, entries)
        return pb.ReadChangesResponse(
            session_ids=sorted(sessions),
            revision=upto,
            more=upto < head.current,
            generation=head.generation,
        )

    async def _sessions(self, scope: Scope, entries: Sequence[RevisionEntry]) -> set[SessionId]:
        told = [json.loads(entry.summary or "{}") for entry in entries]
        statements = [StatementId(id) for id in _ids(told, _STATEMENTS)]
        voice = [VoiceId(id) for id in _ids(told, _VOICE)]
        episodes = {EpisodeId(id) for id in _ids(told, ("episodes",))}
        episodes |= {id for one in entries if (id := read_episode(one.commit_id)) is not None}
        if statements:
            at = AsOf(entries[-1].revision)
            for view in await self._parts.graph.views(scope, statements, at):
                episodes |= set(view.episodes)
        for aspect in await self._parts.voice.aspects(scope, voice) if voice else ():
            episodes |= {claim.episode for claim in aspect.claims}
        found = await self._parts.text.episodes(scope, sorted(episodes)) if episodes else ()
        sessions = {episode.session for episode in found if episode.session is not None}
        return sessions | set(await self._parts.summaries.citing(scope, {*statements, *voice}))


def _ids(told: Iterable[Any], names: Sequence[str]) -> list[str]:
    """What the revisions tell under these names, each once; one of an earlier release tells fewer."""
    return list(dict.fromkeys(id for one in told for name in names for id in one.get(name, ())))
