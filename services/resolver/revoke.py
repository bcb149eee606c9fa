"""Revoke: what goes when an episode is deleted, and what ends when a document no longer says it."""

from collections.abc import Callable, Sequence

from services.domain.graph import Entity, Literal, Statement
from services.domain.ids import EntityId, EpisodeId, PassageId, RecordId, Revision, StatementId, derive_id
from services.domain.instants import Instant, Precision
from services.domain.memory import VoiceClaim
from services.domain.records import Claim, Denial, End, EndReason, Judge, Source
from services.domain.scope import Scope
from services.resolver.change import Draft, Revoked
from services.resolver.naming import sentence
from services.resolver.parting import Parting
from services.stores.graph.port import GraphStore, Revocation
from services.stores.memory.port import Decision, DecisionLog, TextStore, VoiceStore
from services.stores.paging import Page

Said = Claim | End | Denial

_DELETE = "delete_episode"
_DECISIONS = 10
"""Latest decisions on an episode that are looked at: deleting is the last thing that is done to one."""


class Revocations:
    """Drafts revocations and ends of unsupported statements."""

    def __init__(
        self,
        graph: GraphStore,
        voice: VoiceStore,
        text: TextStore,
        decisions: DecisionLog,
        now: Callable[[], Instant],
        parting: Parting,
    ) -> None:
        self._graph = graph
        self._voice = voice
        self._text = text
        self._decisions = decisions
        self._now = now
        self._parting = parting

    async def draft(
        self, scope: Scope, episode: EpisodeId, revision: Revision, actor: str, why: str
    ) -> Draft:
        """Revokes what the episode said; what it had struck out holds again by derivation.

        A verdict is on two statements, whoever made it be asked: it goes when one of them loses all support,
        unless a user gave it. The episode's words go from its records, and from statements and voice aspects
        that others support. Empty only when that was done before: a first revocation is a revision even of an
        episode that said nothing, so that whoever is about to publish something of it has to look again.
        """
        draft = Draft(revision)
        records = await self._graph.of_episode(scope, episode)
        every: list[Said] = [*records.claims, *records.ends, *records.denials]
        draft.emptied = {one.id: Revocation(one.id, one.statement) for one in every}
        draft.emptied |= {one.id: Revocation(one.id, one.left) for one in records.verdicts}
        cited = [one for one in every if one.revoked_at is None]
        draft.revocations = {one.id: draft.emptied[one.id] for one in cited}
        if cited:
            draft.read = {one.statement for one in cited}
            draft.stored = await self._graph.records(scope, sorted(draft.read))
            await self._retell(scope, draft, cited)
        await self._parting.add(scope, draft, [episode])
        await self._revoke_voice(scope, episode, draft)
        kinds = [type(one) for one in cited]
        draft.revoked = Revoked(
            kinds.count(Claim), kinds.count(End), kinds.count(Denial), len(draft.voice_revoked)
        )
        if not draft.empty or not await self._deleted_before(scope, episode):
            made = derive_id(scope, "decision", _DELETE, episode, revision)
            draft.decisions.append(Decision(made, revision, self._now(), _DELETE, episode, actor, why))
        return draft

    async def _deleted_before(self, scope: Scope, episode: EpisodeId) -> bool:
        listed = await self._decisions.list_decisions(scope, episode, Page(_DECISIONS))
        return any(decision.action == _DELETE for decision in listed.items)

    async def _retell(self, scope: Scope, draft: Draft, cited: Sequence[Said]) -> None:
        """Revokes verdicts on what nothing supports any more, and says anew what others support.

        That is: plain sentences where the episode wrote the sentence of a statement.
        """
        stored = draft.stored
        every: list[Said] = [*stored.claims, *stored.ends, *stored.denials]
        left = [one for one in every if one.revoked_at is None and one.id not in draft.revocations]
        supported = {record.statement for record in left}
        for verdict in stored.verdicts:
            gone = {verdict.left, verdict.right} & (draft.read - supported)
            if gone and verdict.revoked_at is None and verdict.judge is not Judge.USER:
                draft.revocations[verdict.id] = Revocation(verdict.id, verdict.left)
        wrote = {(record.statement, record.recorded_at) for record in cited}
        others = {(record.statement, record.recorded_at) for record in left}
        told = [
            one
            for one in stored.statements
            if one.id in supported
            and ((one.id, one.created_at) in wrote or (one.id, one.created_at) not in others)
        ]
        nodes = await self._nodes(scope, told)
        for one in told:
            target = one.object if isinstance(one.object, Literal) else nodes[one.object]
            plain = sentence(nodes[one.subject], nodes[one.predicate], target)
            if one.fact != plain:
                draft.retold[one.id] = plain

    async def _nodes(self, scope: Scope, statements: Sequence[Statement]) -> dict[EntityId, Entity]:
        ids = {node for one in statements for node in (one.subject, one.predicate, one.object)}
        wanted = sorted(node for node in ids if not isinstance(node, Literal))
        return {node.id: node for node in await self._graph.entities(scope, wanted)} if wanted else {}

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
        claimed: dict[StatementId, Instant] = {}
        for claim in records.claims:
            if claim.revoked_at is None:
                latest = claimed.get(claim.statement, claim.attested_at)
                claimed[claim.statement] = max(latest, claim.attested_at)
        # A version before has ended these, and nothing said them since.
        ended = {
            end.statement
            for end in records.ends
            if end.revoked_at is None
            and end.reason is EndReason.SOURCE_REMOVED
            and end.at >= claimed.get(end.statement, end.at)
        }
        for statement in sorted((statements & claimed.keys()) - supported - ended):
            made = RecordId(derive_id(scope, "end", "source-removed", statement, at, episode))
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
            mine = [one for one in aspect.claims if one.episode == episode and one.revoked_at is None]
            ends = [one for one in aspect.ends if one.episode == episode and one.revoked_at is None]
            draft.voice_revoked |= dict.fromkeys(
                [*(one.id for one in mine), *(one.id for one in ends)], aspect.id
            )
            left = [one for one in aspect.claims if one.revoked_at is None and one.episode != episode]
            if not left:
                if mine:
                    draft.voice_unsupported.add(aspect.id)
                continue
            spoke = {claim.recorded_at for claim in mine}
            others = {claim.recorded_at for claim in left}
            quotes = [claim.quote for claim in sorted(left, key=_attested) if claim.quote]
            wrote = aspect.created_at in spoke or aspect.created_at not in others
            if mine and wrote and quotes and quotes[0] != aspect.text:
                draft.voice_retold[aspect.id] = quotes[0]


def _attested(claim: VoiceClaim) -> tuple[Instant, RecordId]:
    return claim.attested_at, claim.id
