"""Beside: what is written of the sessions of what was found, and of the user, for who asks for it."""

from collections.abc import Sequence

from palimpsest.internal.v1 import summaries_pb2 as pb
from services.domain.ids import SessionId
from services.recall.asking import Asking
from services.recall.followed import Followed
from services.recall.passages import PassageFound
from services.recall.ranking import FactFound
from services.stores.memory.port import TextStore

MAX_SUMMARIES = 10
_LOOKED_AT = 40
"""Facts and passages, the best, whose sessions are looked at."""


class Beside:
    """Reads summaries and the persona, as known and at the time that the question is about."""

    def __init__(self, followed: Followed, text: TextStore) -> None:
        self._followed = followed
        self._text = text

    async def of(
        self,
        asking: Asking,
        wanted: tuple[bool, bool],
        facts: Sequence[FactFound],
        passages: Sequence[PassageFound],
    ) -> tuple[Sequence[pb.SessionSummary], pb.Persona | None]:
        """`wanted`: summaries, the persona. Summaries of which nothing stands are left out."""
        summaries: Sequence[pb.SessionSummary] = ()
        persona: pb.Persona | None = None
        if wanted[0]:
            sessions = await self._sessions(asking, facts, passages)
            read = await self._followed.summaries(asking.scope, sessions, asking.known.at)
            summaries = [one for one in read if one.sentences][:MAX_SUMMARIES]
        if wanted[1]:
            at = asking.time.now if asking.time.as_of is None else asking.time.as_of
            persona = await self._followed.persona(asking.scope, asking.known.at, at)
        return summaries, persona

    async def _sessions(
        self, asking: Asking, facts: Sequence[FactFound], passages: Sequence[PassageFound]
    ) -> list[SessionId]:
        """Of what was found, the best first."""
        found = [(fact.fused.score, list(fact.view.episodes)) for fact in facts]
        found += [(one.fused.score, [one.said.episode]) for one in passages]
        best = sorted(found, key=lambda one: -one[0])[:_LOOKED_AT]
        ids = list(dict.fromkeys(episode for _, episodes in best for episode in episodes))
        episodes = await self._text.episodes(asking.scope, ids) if ids else ()
        return list(dict.fromkeys(one.session for one in episodes if one.session is not None))
