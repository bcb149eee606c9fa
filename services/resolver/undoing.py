"""Undoing: a text says again what it said before it was read anew.

All that the reading's revision wrote is revoked, all that it revoked is recorded again, under new ids: the
past is never changed. Where the text has changed since (it was read again, deleted, or left out by a
version), that stands, and nothing is taken back.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from services.domain.identity import Merge
from services.domain.ids import EpisodeId, RecordId, Revision, derive_id
from services.domain.instants import Instant
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.scope import Scope
from services.resolver.change import Draft, Outcome, Revoked, outcome_from_json
from services.resolver.deciding import Action, By, decide
from services.stores.graph.port import GraphStore, Records, Revocation
from services.stores.memory.commits import read_episode, reading
from services.stores.memory.groups import all_merges
from services.stores.memory.port import ReadingStore, RevisionLog, TextStore, VoiceStore
from services.stores.paging import Page

T = TypeVar("T", Claim, End, Denial, Verdict, Merge, VoiceClaim, VoiceEnd)

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Undo:
    """Which reading is taken back, for which commit, and who asked."""

    episode: EpisodeId
    read_by: str
    commit: str
    by: By


class Undoing:
    """Drafts what takes a reading back."""

    def __init__(
        self,
        graph: GraphStore,
        voice: VoiceStore,
        readings: ReadingStore,
        text: TextStore,
        log: RevisionLog,
    ) -> None:
        self._graph = graph
        self._voice = voice
        self._readings = readings
        self._text = text
        self._log = log

    async def read_by(self, scope: Scope, commit: str, after: str) -> tuple[list[EpisodeId], str]:
        """Episodes that a commit read anew, oldest first, of one page of the log; and where it goes on."""
        page = await self._log.scan(scope, Page(_PAGE, after))
        ids = [one.commit_id for one in page.items]
        episodes = [(id, episode) for id in ids if (episode := read_episode(id)) is not None]
        return [episode for id, episode in episodes if id == reading(episode, commit)], page.after

    async def draft(self, scope: Scope, revision: Revision, undo: Undo, now: Instant) -> Draft | None:
        """None where the text has changed since, or was not read by that commit. Raises StoreUnavailable."""
        entry = await self._log.entry(scope, reading(undo.episode, undo.read_by))
        if entry is None or await self._changed_since(scope, undo.episode, entry.revision):
            return None
        outcome = outcome_from_json(entry.summary)
        inverse = _Inverse(scope, entry.revision, undo.commit, revision)
        stored = await self._told(scope, outcome)
        draft = Draft(revision, keeps_words=True)
        draft.read, draft.stored = {one.id for one in stored.statements}, stored
        claims = inverse(draft.claims, stored.claims)
        ends = inverse(draft.ends, stored.ends)
        denials = inverse(draft.denials, stored.denials)
        verdicts = inverse(draft.verdicts, stored.verdicts)
        said: list[Claim | End | Denial] = [*claims, *ends, *denials]
        draft.revocations = {one.id: Revocation(one.id, one.statement) for one in said}
        draft.revocations |= {one.id: Revocation(one.id, one.left) for one in verdicts}
        for merge in inverse(draft.merges, await all_merges(self._readings, scope)):
            draft.part(merge)
        spoken = await self._spoken(scope, outcome)
        unsaid = inverse(draft.voice_claims, [claim for aspect in spoken for claim in aspect.claims])
        undone = inverse(draft.voice_ends, [end for aspect in spoken for end in aspect.ends])
        draft.voice_revoked = {one.id: one.voice for one in unsaid} | {one.id: one.voice for one in undone}
        draft.revoked = Revoked(len(claims), len(ends), len(denials), len(draft.voice_revoked))
        decide(scope, draft, now, Action.UNDO_READING, undo.episode, undo.by)
        return draft

    async def _changed_since(self, scope: Scope, episode: EpisodeId, revision: Revision) -> bool:
        found = await self._text.episodes(scope, [episode])
        if not found or found[0].deleted_at is not None:
            return True
        records = await self._graph.of_episode(scope, episode)
        spoken = await self._voice.of_episode(scope, episode)
        every: list[Claim | End | Denial | VoiceClaim | VoiceEnd] = [
            *records.claims,
            *records.ends,
            *records.denials,
            *(one for aspect in spoken for one in aspect.claims if one.episode == episode),
            *(one for aspect in spoken for one in aspect.ends if one.episode == episode),
        ]
        return any(max(one.recorded_at, one.revoked_at or 0) > revision for one in every)

    async def _told(self, scope: Scope, outcome: Outcome) -> Records:
        touched = () if outcome.touched is None else outcome.touched.statements
        return await self._graph.records(scope, sorted({*outcome.statements_added, *touched}))

    async def _spoken(self, scope: Scope, outcome: Outcome) -> list[VoiceAspect]:
        touched = () if outcome.touched is None else outcome.touched.voice
        ids = sorted({*outcome.voice_added, *touched})
        return list(await self._voice.aspects(scope, ids)) if ids else []


@dataclass(frozen=True, slots=True)
class _Inverse:
    """Of what was written at revision `at`: for a commit, at a later revision."""

    scope: Scope
    at: Revision
    commit: str
    revision: Revision

    def __call__(self, drafted: dict[RecordId, T], stored: Iterable[T]) -> list[T]:
        """Drafts anew what was revoked then; answers what was recorded then and counts still."""
        gone: list[T] = []
        for one in stored:
            if one.revoked_at == self.at:
                made = RecordId(derive_id(self.scope, "undone", one.id, self.commit))
                drafted[made] = replace(one, id=made, recorded_at=self.revision, revoked_at=None)
            elif one.recorded_at == self.at and one.revoked_at is None:
                gone.append(one)
        return gone
