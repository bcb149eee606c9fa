"""Revoke: what goes when an episode is deleted, and what ends when a document no longer says it."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from services.domain.graph import Entity, Literal, Statement
from services.domain.ids import (
    EntityId,
    EpisodeId,
    PassageId,
    RecordId,
    Revision,
    StatementId,
    VoiceId,
    derive_id,
)
from services.domain.instants import Instant, Precision
from services.domain.memory import VoiceClaim, VoiceEnd
from services.domain.records import Claim, Denial, End, EndReason, Judge, Source, Verdict
from services.domain.scope import Scope
from services.domain.withdrawn import withdraws
from services.resolver.change import Draft, Revoked
from services.resolver.naming import sentence
from services.resolver.parting import Parting
from services.stores.graph.port import GraphStore, Revocation
from services.stores.memory.port import Decision, DecisionLog, TextStore, VoiceStore
from services.stores.paging import Page

Said = Claim | End | Denial
T = TypeVar("T")

_DELETE = "delete_episode"
_DECISIONS = 10
"""Latest decisions on an episode that are looked at: deleting is the last thing that is done to one."""
_AT_ONCE = 8
"""Look-ups by episode that are under way together."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage lies now, and when it was said there."""

    episode: EpisodeId
    said_at: Instant


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A passage that a version, told by its episode, leaves out at its time."""

    passage: PassageId
    at: Instant
    episode: EpisodeId | None


@dataclass(frozen=True, slots=True)
class Deletion:
    """Who deletes and why; `action` and `target` when it is more than episodes.

    `withdrawals`: what later versions leave out, for what the deleted one had left out before them.
    """

    actor: str
    why: str
    action: str = ""
    target: str = ""
    withdrawals: Mapping[PassageId, Withdrawn] = field(default_factory=dict)


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
        self,
        scope: Scope,
        episodes: Sequence[EpisodeId],
        revision: Revision,
        deletion: Deletion,
    ) -> Draft:
        """Revokes what the episodes said; what they had struck out holds again by derivation.

        A verdict is on two statements, whoever made it be asked: it goes when one of them loses all support,
        unless a user gave it. The episodes' words go from their records, and from statements and voice
        aspects that others support. A passage that lies in another episode now was said there too: what it
        says is recorded anew, as said there. Empty only when that was done before: a first revocation is a
        revision even of an episode that said nothing, so that whoever is about to publish something of it
        has to look again.
        """
        draft = Draft(revision, episodes=tuple(episodes))
        every: list[Said] = []
        verdicts: list[Verdict] = []
        for found in await _gathered([self._graph.of_episode(scope, episode) for episode in episodes]):
            every += [*found.claims, *found.ends, *found.denials]
            verdicts += found.verdicts
        draft.emptied = {one.id: Revocation(one.id, one.statement) for one in every}
        draft.emptied |= {one.id: Revocation(one.id, one.left) for one in verdicts}
        cited = [one for one in every if one.revoked_at is None]
        draft.revocations = {one.id: draft.emptied[one.id] for one in cited}
        again = await self._said_again(scope, episodes, cited)
        told = [one for one in every if one.revoked_at is None or not _withdraws(one)]
        if told:
            draft.read = {one.statement for one in told}
            draft.stored = await self._graph.records(scope, sorted(draft.read))
            _record_anew(scope, draft, cited, again, deletion.withdrawals)
            await self._retell(scope, draft, told)
            draft.forgotten = _read_otherwise(draft, cited)
        await self._parting.add(scope, draft, episodes)
        await self._revoke_voice(scope, episodes, draft)
        kept = {one.id for one in cited if one.source.passage in again and not _withdraws(one)}
        kinds = [type(one) for one in cited if one.id not in kept]
        draft.revoked = Revoked(
            kinds.count(Claim), kinds.count(End), kinds.count(Denial), len(draft.voice_revoked)
        )
        await self._decide(scope, draft, episodes, deletion)
        return draft

    async def _said_again(
        self, scope: Scope, episodes: Sequence[EpisodeId], cited: Sequence[Said]
    ) -> dict[PassageId, Place]:
        """Of the passages that records were drawn from, those that lie in other episodes now."""
        named = sorted({one.source.passage for one in cited if one.source.passage and not _withdraws(one)})
        return await self._places(scope, episodes, named)

    async def _places(
        self, scope: Scope, episodes: Sequence[EpisodeId], passages: Sequence[PassageId]
    ) -> dict[PassageId, Place]:
        there = await self._text.passages(scope, passages) if passages else ()
        moved = [one for one in there if one.episode not in episodes]
        if not moved:
            return {}
        homes = {one.id: one for one in await self._text.episodes(scope, [one.episode for one in moved])}
        return {
            one.id: Place(
                one.episode, homes[one.episode].reference_time if one.said_at is None else one.said_at
            )
            for one in moved
            if one.episode in homes and homes[one.episode].deleted_at is None
        }

    async def _decide(
        self, scope: Scope, draft: Draft, episodes: Sequence[EpisodeId], deletion: Deletion
    ) -> None:
        """Notes who deleted what, unless nothing of it was left to delete."""
        if draft.empty and not [one for one in episodes if not await self._deleted_before(scope, one)]:
            return
        deleted = [(_DELETE, str(episode)) for episode in episodes]
        deleted += [(deletion.action, deletion.target)] if deletion.action else []
        for action, target in deleted:
            made = derive_id(scope, "decision", action, target, draft.revision)
            draft.decisions.append(
                Decision(made, draft.revision, self._now(), action, target, deletion.actor, deletion.why)
            )

    async def _deleted_before(self, scope: Scope, episode: EpisodeId) -> bool:
        listed = await self._decisions.list_decisions(scope, episode, Page(_DECISIONS))
        return any(decision.action == _DELETE for decision in listed.items)

    async def _retell(self, scope: Scope, draft: Draft, told: Sequence[Said]) -> None:
        """Revokes verdicts on what nothing supports any more, and says anew what others support.

        That is: plain sentences where the episodes wrote the sentence of a statement, by whichever reading.
        `told`: what they say, and what they said by earlier ones.
        """
        stored = draft.stored
        every: list[Said] = [*stored.claims, *stored.ends, *stored.denials]
        left = [one for one in every if one.revoked_at is None and one.id not in draft.revocations]
        left += [*draft.claims.values(), *draft.ends.values(), *draft.denials.values()]
        supported = {record.statement for record in left}
        for verdict in stored.verdicts:
            gone = {verdict.left, verdict.right} & (draft.read - supported)
            if gone and verdict.revoked_at is None and verdict.judge is not Judge.USER:
                draft.revocations[verdict.id] = Revocation(verdict.id, verdict.left)
        wrote = {(record.statement, record.recorded_at) for record in told}
        others = {(record.statement, record.recorded_at) for record in left}
        # What is recorded anew has its words still: the sentence was drawn from a passage that stays.
        anew = {record.statement for record in left if record.recorded_at == draft.revision}
        retold = [
            one
            for one in stored.statements
            if one.id in supported - anew
            and ((one.id, one.created_at) in wrote or (one.id, one.created_at) not in others)
        ]
        nodes = await self._nodes(scope, retold)
        for one in retold:
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
        """Withdraws passages, at a new version's time, from each statement that claims of theirs support.

        Whether that ends the statement is derived (services/domain/withdrawn.py). `episode` is the version's;
        nothing is withdrawn by one that is deleted.
        """
        draft = Draft(revision)
        if episode and not [one for one in await self._text.episodes(scope, [episode]) if not one.deleted_at]:
            return draft
        there = await self._text.passages(scope, removed)
        gone = {passage.id for passage in there}
        cited: set[tuple[StatementId, PassageId]] = set()
        sources = sorted({passage.episode for passage in there})
        for records in await _gathered([self._graph.of_episode(scope, source) for source in sources]):
            cited |= {
                (claim.statement, claim.source.passage)
                for claim in records.claims
                if claim.revoked_at is None and claim.source.passage in gone
            }
        records = await self._graph.records(scope, sorted({statement for statement, _ in cited}))
        before = {
            (end.statement, end.source.passage)
            for end in records.ends
            if end.revoked_at is None and end.reason is EndReason.SOURCE_REMOVED
        }
        for statement, passage in sorted(cited - before):
            withdraw(scope, draft, statement, Withdrawn(passage, at, episode or None))
        return draft

    async def _revoke_voice(self, scope: Scope, episodes: Sequence[EpisodeId], draft: Draft) -> None:
        leaving = set(episodes)
        found = await _gathered([self._voice.of_episode(scope, episode) for episode in episodes])
        aspects = {aspect.id: aspect for listed in found for aspect in listed}
        spoken = [one for aspect in aspects.values() for one in aspect.claims if _counts(one, leaving)]
        places = await self._places(scope, episodes, sorted({one.passage for one in spoken if one.passage}))
        anew = _spoken_anew(scope, draft, spoken, places)
        for aspect in aspects.values():
            mine = [one for one in aspect.claims if _counts(one, leaving)]
            ends = [one for one in aspect.ends if _counts(one, leaving)]
            draft.voice_revoked |= dict.fromkeys(
                [*(one.id for one in mine), *(one.id for one in ends)], aspect.id
            )
            for end in ends:
                place = anew.get((end.by, end.episode))
                if place is not None:
                    made = RecordId(derive_id(scope, "voice-end", aspect.id, end.by or "", place.episode))
                    draft.voice_ends[made] = VoiceEnd(
                        made, aspect.id, place.said_at, end.by, place.episode, end.why, draft.revision
                    )
            left = [one for one in aspect.claims if one.revoked_at is None and one.episode not in leaving]
            left += [one for one in draft.voice_claims.values() if one.voice == aspect.id]
            # Of earlier readings.
            revoked = [one for one in aspect.claims if one.revoked_at and one.episode in leaving]
            worded = [one.id for one in revoked if one.quote]
            worded += [one.id for one in aspect.ends if one.revoked_at and one.episode in leaving and one.why]
            draft.voice_emptied |= dict.fromkeys(worded, aspect.id)
            if not left:
                if mine or (revoked and aspect.text):
                    draft.voice_unsupported.add(aspect.id)
                continue
            mine += revoked
            spoke = {claim.recorded_at for claim in mine}
            others = {claim.recorded_at for claim in left}
            quotes = [claim.quote for claim in sorted(left, key=_attested) if claim.quote]
            wrote = aspect.created_at in spoke or aspect.created_at not in others
            stays = any(claim.recorded_at == draft.revision for claim in left)
            if mine and wrote and not stays and quotes and quotes[0] != aspect.text:
                draft.voice_retold[aspect.id] = quotes[0]


def _read_otherwise(draft: Draft, cited: Sequence[Said]) -> set[StatementId]:
    """Statements that the episodes said by an earlier reading alone, whose words are there."""
    stored = draft.stored
    every: list[Said] = [*stored.claims, *stored.ends, *stored.denials]
    told = {one.statement for one in every if one.revoked_at is None and one.source.episode is not None}
    told |= {one.statement for one in cited}
    return {one.id for one in stored.statements if one.fact and one.id not in told}


def _record_anew(
    scope: Scope,
    draft: Draft,
    cited: Sequence[Said],
    again: Mapping[PassageId, Place],
    withdrawals: Mapping[PassageId, Withdrawn],
) -> None:
    """What was said in passages that stay, as said where they lie now; what is left out, by which version."""
    said = {(one.statement, one.source.passage) for one in cited if not _withdraws(one)}
    for one in cited:
        passage = one.source.passage
        if passage is None:
            continue
        if not _withdraws(one):
            if passage in again:
                _say_anew(scope, draft, one, again[passage])
        elif passage in withdrawals:
            withdraw(scope, draft, one.statement, withdrawals[passage])
    for end in draft.stored.ends:
        passage = end.source.passage
        # Nothing is left to withdraw of a passage that went with its claims.
        gone = (end.statement, passage) in said and passage not in again
        if gone and end.revoked_at is None and _withdraws(end):
            draft.revocations[end.id] = Revocation(end.id, end.statement)


def _say_anew(scope: Scope, draft: Draft, one: Said, place: Place) -> None:
    """A time that followed from when it was said follows from when it is said now."""
    was, now = one.attested_at, place.said_at
    source = replace(one.source, episode=place.episode)
    made = RecordId(derive_id(scope, "said-anew", one.id, place.episode))
    match one:
        case Claim():
            seen = now if one.seen == was else one.seen
            draft.claims[made] = replace(
                one, id=made, source=source, attested_at=now, seen=seen, recorded_at=draft.revision
            )
        case End():
            at = now if one.at == was else one.at
            draft.ends[made] = replace(
                one, id=made, source=source, attested_at=now, at=at, recorded_at=draft.revision
            )
        case Denial():
            draft.denials[made] = replace(
                one, id=made, source=source, attested_at=now, recorded_at=draft.revision
            )


def withdraw(scope: Scope, draft: Draft, statement: StatementId, by: Withdrawn) -> RecordId:
    """Drafts that a version takes back what a passage says of a statement; answers the end's id."""
    made = RecordId(derive_id(scope, "end", "source-removed", statement, by.passage, by.at, by.episode or ""))
    draft.ends[made] = End(
        made,
        statement,
        by.at,
        by.at,
        Source(by.episode, by.passage),
        Precision.INSTANT,
        EndReason.SOURCE_REMOVED,
        recorded_at=draft.revision,
    )
    return made


def _spoken_anew(
    scope: Scope, draft: Draft, spoken: Sequence[VoiceClaim], places: Mapping[PassageId, Place]
) -> dict[tuple[VoiceId | None, EpisodeId | None], Place]:
    """Claims of the voice whose passages stay; answers which aspects of which episodes are said where now."""
    found: dict[tuple[VoiceId | None, EpisodeId | None], Place] = {}
    for claim in spoken:
        if claim.passage is None or claim.passage not in places:
            continue
        place = places[claim.passage]
        found[claim.voice, claim.episode] = place
        made = RecordId(
            derive_id(scope, "voice-claim", claim.voice, place.episode, claim.passage, claim.quote)
        )
        draft.voice_claims[made] = VoiceClaim(
            made, claim.voice, place.episode, claim.passage, claim.quote, place.said_at, draft.revision
        )
    return found


def _withdraws(one: Said) -> bool:
    return isinstance(one, End) and withdraws(one)


def _counts(one: VoiceClaim | VoiceEnd, episodes: Collection[EpisodeId]) -> bool:
    return one.revoked_at is None and one.episode in episodes


def _attested(claim: VoiceClaim) -> tuple[Instant, RecordId]:
    return claim.attested_at, claim.id


async def _gathered(asked: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All answers in order, a few asked for at once."""
    few = asyncio.Semaphore(_AT_ONCE)

    async def one(work: Coroutine[Any, Any, T]) -> T:
        async with few:
            return await work

    return list(await asyncio.gather(*(one(work) for work in asked)))
