"""Voicing: what a user decides about sentences of the voice: ending one, and making it hold again."""

from collections.abc import Callable
from dataclasses import replace

from palimpsest.internal.v1 import resolver_judging_pb2 as pb
from services.domain.errors import ValidationFailed, Violation, VoiceAspectNotFound
from services.domain.ids import RecordId, Revision, VoiceId, derive_id
from services.domain.instants import Instant
from services.domain.memory import VoiceAspect, VoiceEnd
from services.domain.scope import Scope
from services.domain.voice import claims_at, ended_by
from services.resolver.change import Draft
from services.resolver.deciding import Action, decide
from services.resolver.judging import by_asker, commit_of
from services.resolver.publish import Publisher
from services.stores.memory.port import VoiceStore
from services.wire.fields import maybe


class Voicing:
    """EndVoiceAspect and RestoreVoiceAspect. Idempotent by commit id.

    Both raise VoiceAspectNotFound (also where the text was forgotten), Conflict, StoreUnavailable.
    """

    def __init__(self, publisher: Publisher, voice: VoiceStore, now: Callable[[], Instant]) -> None:
        self._publisher = publisher
        self._voice = voice
        self._now = now

    async def end(self, scope: Scope, request: pb.EndVoiceAspectRequest) -> pb.EndVoiceAspectResponse:
        """Records that a sentence is held no more; the user's last word goes before what models say.

        Raises ValidationFailed for a time before it was last said.
        """
        id, by = VoiceId(request.voice_id), by_asker(request.asker)
        made = RecordId(derive_id(scope, "voice-end", id, "user", request.asker.commit_id))

        async def build(known: Revision, revision: Revision) -> Draft:
            aspect = await self._aspect(scope, known, id)
            now, draft = self._now(), Draft(revision)
            latest = claims_at(aspect, known)[-1].attested_at
            at = maybe(request, "at")
            if at is None:
                at = max(now, latest)
            elif at < latest:
                raise ValidationFailed(
                    Violation("ended_at", "it was said again after that", "end.said_since")
                )
            draft.voice_ends[made] = VoiceEnd(made, id, at, None, None, by.why, revision)
            decide(scope, draft, now, Action.END_VOICE, id, by)
            return draft

        published = await self._publisher.publish(scope, commit_of("end-voice", request.asker, id), build)
        return pb.EndVoiceAspectResponse(revision=published.revision)

    async def restore(
        self, scope: Scope, request: pb.RestoreVoiceAspectRequest
    ) -> pb.RestoreVoiceAspectResponse:
        """Revokes what ended it, the user's own ends first; nothing where it is held already."""
        id, by = VoiceId(request.voice_id), by_asker(request.asker)

        async def build(known: Revision, revision: Revision) -> Draft:
            aspect = await self._aspect(scope, known, id)
            draft = Draft(revision)
            while (end := ended_by(aspect, known)) is not None:
                draft.voice_undone[end.id] = id
                aspect = replace(aspect, ends=tuple(one for one in aspect.ends if one.id != end.id))
            draft.undone = list(draft.voice_undone)
            if draft.undone:
                decide(scope, draft, self._now(), Action.RESTORE_VOICE, id, by)
            return draft

        published = await self._publisher.publish(scope, commit_of("restore-voice", request.asker, id), build)
        return pb.RestoreVoiceAspectResponse(revision=published.revision)

    async def _aspect(self, scope: Scope, known: Revision, id: VoiceId) -> VoiceAspect:
        found = await self._voice.aspects(scope, [id])
        if not found or not found[0].text or not claims_at(found[0], known):
            raise VoiceAspectNotFound(id)
        return found[0]
