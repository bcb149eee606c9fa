"""Revoke: what goes when an episode is deleted, and what ends when a document no longer says it."""

from collections.abc import Callable, Sequence

from services.domain.ids import EpisodeId, PassageId, RecordId, Revision, StatementId, VoiceId, derive_id
from services.domain.instants import Instant, Precision
from services.domain.records import Claim, Denial, End, EndReason, Source
from services.domain.scope import Scope
from services.resolver.change import Draft, Revoked
from services.stores.graph.port import GraphStore, Revocation
from services.stores.memory.port import Decision, TextStore, VoiceStore


class Revocations:
    """Drafts revocations and ends of unsupported statements."""

    def __init__(
        self, graph: GraphStore, voice: VoiceStore, text: TextStore, now: Callable[[], Instant]
    ) -> None:
        self._graph = graph
        self._voice = voice
        self._text = text
        self._now = now

    async def draft(
        self, scope: Scope, episode: EpisodeId, revision: Revision, actor: str, why: str
    ) -> Draft:
        """Revokes every record that cites the episode; what it had struck out holds again by derivation."""
        draft = Draft(revision)
        records = await self._graph.of_episode(scope, episode)
        claims = [claim for claim in records.claims if claim.revoked_at is None]
        ends = [end for end in records.ends if end.revoked_at is None]
        denials = [denial for denial in records.denials if denial.revoked_at is None]
        verdicts = [verdict for verdict in records.verdicts if verdict.revoked_at is None]
        cited: list[Claim | End | Denial] = [*claims, *ends, *denials]
        for record in cited:
            draft.revocations[record.id] = Revocation(record.id, record.statement)
        for verdict in verdicts:
            draft.revocations[verdict.id] = Revocation(verdict.id, verdict.left)
        await self._revoke_voice(scope, episode, draft)
        draft.revoked = Revoked(len(claims), len(ends), len(denials), len(verdicts), len(draft.voice_revoked))
        if not draft.empty:
            made = derive_id(scope, "decision", "delete_episode", episode, revision)
            decision = Decision(made, revision, self._now(), "delete_episode", episode, actor, why)
            draft.decisions.append(decision)
        return draft

    async def unsupported(
        self, scope: Scope, removed: Sequence[PassageId], at: Instant, episode: EpisodeId, revision: Revision
    ) -> Draft:
        """Ends, at the new version's time, each statement all of whose claims lie in removed passages."""
        draft = Draft(revision)
        gone = set(removed)
        episodes = {passage.episode for passage in await self._text.passages(scope, removed)}
        statements: set[StatementId] = set()
        for source in sorted(episodes):
            records = await self._graph.of_episode(scope, source)
            statements |= {claim.statement for claim in records.claims if claim.source.passage in gone}
        records = await self._graph.records(scope, sorted(statements))
        supported = {
            claim.statement
            for claim in records.claims
            if claim.revoked_at is None and claim.source.passage not in gone
        }
        ended = {
            end.statement
            for end in records.ends
            if end.revoked_at is None and end.reason is EndReason.SOURCE_REMOVED and end.at == at
        }
        claimed = {claim.statement for claim in records.claims if claim.revoked_at is None}
        for statement in sorted((statements & claimed) - supported - ended):
            made = RecordId(derive_id(scope, "end", "source-removed", statement, at))
            draft.ends[made] = End(
                made,
                statement,
                at,
                at,
                Source(episode or None),
                Precision.INSTANT,
                EndReason.SOURCE_REMOVED,
                recorded_at=revision,
            )
        return draft

    async def _revoke_voice(self, scope: Scope, episode: EpisodeId, draft: Draft) -> None:
        for aspect in await self._voice.of_episode(scope, episode):
            mine = [c.id for c in aspect.claims if c.episode == episode and c.revoked_at is None]
            mine += [e.id for e in aspect.ends if e.episode == episode and e.revoked_at is None]
            draft.voice_revoked.update(mine)
            left = [c for c in aspect.claims if c.revoked_at is None and c.episode != episode]
            if mine and not left:
                draft.voice_unsupported.add(VoiceId(aspect.id))
