"""Mending: repairs that change what is believed, each one revision with its decisions.

Upkeep finds what is wrong (services/upkeep); this is how it is put right without a word of anybody.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from services.domain.ids import EpisodeId, RecordId, Revision, StatementId, VoiceId, derive_id
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.resolver.change import Draft
from services.resolver.publish import Publisher
from services.resolver.revoke import Deletion, Revocations
from services.stores.memory.port import Decision, VoiceStore

ACTOR = "upkeep"


class Mending:
    """Idempotent: each repair is named by what it mends, from the revision in which it was found broken.

    Every method raises Conflict, StoreUnavailable and EngineError as publishing does.
    """

    def __init__(
        self,
        publisher: Publisher,
        revocations: Revocations,
        voice: VoiceStore,
        now: Callable[[], Instant],
    ) -> None:
        self._publisher = publisher
        self._revocations = revocations
        self._voice = voice
        self._now = now

    async def settle(self, scope: Scope) -> None:
        """Completes a revision that was begun and not published."""
        await self._publisher.settle(scope)

    async def derive_again(
        self,
        scope: Scope,
        found_at: Revision,
        statements: Sequence[StatementId],
        unsupported: Sequence[StatementId],
    ) -> Revision:
        """Spans as the records have them; of `unsupported`, those that no record supports lose their text."""
        every = list(dict.fromkeys([*statements, *unsupported]))

        async def build(_known: Revision, revision: Revision) -> Draft:
            draft = Draft(revision, again=set(statements), forgotten=set(unsupported))
            draft.decisions = [self._decision(scope, revision, "mend_spans", id) for id in every]
            return draft

        return await self._publish(scope, "derive", found_at, every, build)

    async def revoke_voice(
        self, scope: Scope, found_at: Revision, claims: Mapping[RecordId, VoiceId]
    ) -> Revision:
        """Claims of the voice that nothing said supports; an aspect without others loses its text."""

        async def build(_known: Revision, revision: Revision) -> Draft:
            draft = Draft(revision)
            for aspect in await self._voice.aspects(scope, sorted(set(claims.values()))):
                counting = [claim.id for claim in aspect.claims if claim.revoked_at is None]
                gone = [id for id in counting if id in claims]
                draft.voice_revoked |= dict.fromkeys(gone, aspect.id)
                if len(gone) == len(counting):
                    draft.voice_unsupported.add(aspect.id)
                draft.decisions.append(self._decision(scope, revision, "mend_voice", aspect.id))
            return draft

        return await self._publish(scope, "voice", found_at, sorted(claims), build)

    async def revoke_episode(self, scope: Scope, found_at: Revision, episode: EpisodeId) -> Revision:
        """All that an episode said whose text is gone: what its deletion began."""

        async def build(_known: Revision, revision: Revision) -> Draft:
            deletion = Deletion(ACTOR, "its text is gone")
            return await self._revocations.draft(scope, [episode], revision, deletion)

        return await self._publish(scope, "episode", found_at, [episode], build)

    async def _publish(
        self,
        scope: Scope,
        kind: str,
        found_at: Revision,
        ids: Sequence[str],
        build: Callable[[Revision, Revision], Awaitable[Draft]],
    ) -> Revision:
        commit = derive_id(scope, "mend", kind, found_at, *sorted(ids))
        return (await self._publisher.publish(scope, f"mend:{commit}", build)).revision

    def _decision(self, scope: Scope, revision: Revision, action: str, target: str) -> Decision:
        made = derive_id(scope, "decision", action, target, revision)
        return Decision(made, revision, self._now(), action, target, ACTOR)
