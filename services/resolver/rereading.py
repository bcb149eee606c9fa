"""Rereading: what an episode says by a new reading, in place of what it said by those before.

What both say stays as it is. What only the earlier one said is revoked, and its words stay: as of a revision
before, that was known. What users recorded by hand, and what was judged of statements and names that some
text tells still, is not touched.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeVar

from services.domain.identity import Merge
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
from services.domain.instants import Instant
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd
from services.domain.records import Claim, Denial, End, Judge, Verdict
from services.domain.scope import Scope
from services.domain.withdrawn import withdraws
from services.resolver.change import Draft, Revoked
from services.resolver.deciding import Action, By, decide
from services.resolver.parting import Parting
from services.resolver.revoke import Withdrawn, withdraw
from services.resolver.said import Earlier
from services.stores.graph.port import GraphStore, Records, Revocation
from services.stores.memory.port import ReadingStore, VoiceStore

T = TypeVar("T", Claim, End, Denial, Verdict, Merge, VoiceClaim, VoiceEnd)


@dataclass(frozen=True, slots=True)
class Anew:
    """That a text is read anew: for which commit, who asked, and what later versions leave out of it."""

    commit: str
    by: By
    withdrawals: Mapping[PassageId, Withdrawn] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaving:
    """What nothing but the earlier reading says, and the new one does not say, either.

    Nobody is asked how it stands to what is told now.
    """

    statements: frozenset[StatementId] = frozenset()
    entities: frozenset[EntityId] = frozenset()
    voice: frozenset[VoiceId] = frozenset()
    back: frozenset[EntityId] = frozenset()
    """Entities that an earlier reading dropped, and this one names again: what they are is asked anew."""


@dataclass(frozen=True, slots=True)
class Before:
    """All that an episode's text ever said, revoked records included."""

    episode: EpisodeId
    records: Records
    voice: Sequence[VoiceAspect]
    merges: Sequence[Merge]
    stored: Records
    """Of the statements that it says something of by now: all that is recorded of them."""

    @property
    def ends(self) -> list[End]:
        """Without those by which a version takes passages of earlier ones back: no reading drew them."""
        return [end for end in self.records.ends if not withdraws(end)]

    @property
    def alone(self) -> set[StatementId]:
        """Statements that no other text says anything of."""
        return _said_in(self.records) - _told_by_others(self.stored, self.episode)

    @property
    def earlier(self) -> Earlier:
        """What decides which thing an end or a denial means that names it loosely."""
        over: list[End | Denial] = [*self.ends, *self.records.denials]
        return Earlier(self.alone, {one.statement for one in over if one.revoked_at is None})


class Rereading:
    """Brings a draft of what an episode says now in line with what it said before."""

    def __init__(
        self, graph: GraphStore, voice: VoiceStore, readings: ReadingStore, parting: Parting
    ) -> None:
        self._graph = graph
        self._voice = voice
        self._readings = readings
        self._parting = parting

    async def before(self, scope: Scope, episode: EpisodeId) -> Before:
        """Raises StoreUnavailable."""
        records = await self._graph.of_episode(scope, episode)
        return Before(
            episode,
            records,
            await self._voice.of_episode(scope, episode),
            await self._readings.of_episode(scope, episode),
            await self._graph.records(scope, sorted(_said_in(records))),
        )

    async def leaving(self, scope: Scope, draft: Draft, before: Before) -> Leaving:
        """Of a draft that has what is said now and was not judged yet. Raises StoreUnavailable."""
        gone = before.alone - _said_of(draft)
        claims = {one.id: [claim for claim in one.claims if claim.revoked_at is None] for one in before.voice}
        mine = {
            id for id, told in claims.items() if told and all(one.episode == before.episode for one in told)
        }
        entities = await self._parting.losing(scope, _without(draft, before, gone)) if gone else set()
        back = await self._parting.losing(scope, Draft(draft.revision, stored=draft.stored))
        return Leaving(frozenset(gone), frozenset(entities), frozenset(mine), frozenset(back))

    async def replace(self, scope: Scope, draft: Draft, before: Before, anew: Anew, now: Instant) -> None:
        """Leaves in the draft what is new, and adds what is revoked. Raises StoreUnavailable."""
        claims = _settle(scope, draft.claims, before.records.claims, anew)
        ends = _settle(scope, draft.ends, before.ends, anew)
        denials = _settle(scope, draft.denials, before.records.denials, anew)
        verdicts = _settle(scope, draft.verdicts, _of_pairs(before, draft.verdicts.values()), anew)
        _settle(scope, draft.merges, before.merges, anew)
        gone: list[Claim | End | Denial] = [*claims, *ends, *denials]
        draft.revocations |= {one.id: Revocation(one.id, one.statement) for one in gone}
        draft.revocations |= {one.id: Revocation(one.id, one.left) for one in verdicts}
        draft.read = _said_of(draft) | {one.statement for one in gone}
        draft.stored = await self._graph.records(scope, sorted(draft.read))
        _withdraw(scope, draft, claims, anew)
        _drop_verdicts(draft)
        await self._parting.part(scope, draft)
        spoken = [one for aspect in before.voice for one in aspect.claims if one.episode == before.episode]
        over = [one for aspect in before.voice for one in aspect.ends if one.episode == before.episode]
        unsaid: list[VoiceClaim | VoiceEnd] = [
            *_settle(scope, draft.voice_claims, spoken, anew),
            *_settle(scope, draft.voice_ends, over, anew),
        ]
        draft.voice_revoked = {one.id: one.voice for one in unsaid}
        draft.revoked = Revoked(len(claims), len(ends), len(denials), len(unsaid))
        draft.keeps_words = True
        draft.decisions, judged = [], draft.decisions
        if not draft.empty:
            draft.decisions = judged
            decide(scope, draft, now, Action.READ_ANEW, before.episode, anew.by)


def _settle(scope: Scope, drafted: dict[RecordId, T], before: Iterable[T], anew: Anew) -> list[T]:
    """Takes out of the draft what stands there so already; answers what stands there and is not drafted.

    An id that is taken, by a record that was revoked or that has another confidence, is not used again.
    """
    taken = {one.id: one for one in before}
    standing = {_content(one): one for one in taken.values() if one.revoked_at is None}
    for id, one in list(drafted.items()):
        if standing.pop(_content(one), None) is not None:
            del drafted[id]
        elif id in taken:
            del drafted[id]
            again = RecordId(derive_id(scope, "anew", id, anew.commit))
            drafted[again] = replace(one, id=again)
    return list(standing.values())


def _content(one: T) -> T:
    """What a record says, whenever it was recorded."""
    return replace(one, id=RecordId(""), recorded_at=Revision(0), revoked_at=None)


def _of_pairs(before: Before, drafted: Iterable[Verdict]) -> list[Verdict]:
    """What the earlier reading made a model say of pairs that were judged now."""
    pairs = {(one.left, one.right) for one in drafted}
    return [
        one
        for one in before.records.verdicts
        if (one.left, one.right) in pairs and one.judge is not Judge.USER
    ]


def _drop_verdicts(draft: Draft) -> None:
    """A verdict goes when no text tells one of its statements any more, unless a user gave it."""
    stored = draft.stored
    every: list[Claim | End | Denial] = [*stored.claims, *stored.ends, *stored.denials]
    told = _said_of(draft) | {
        one.statement
        for one in every
        if one.revoked_at is None and one.id not in draft.revocations and one.source.episode is not None
    }
    for one in stored.verdicts:
        untold = {one.left, one.right} & (draft.read - told)
        if untold and one.revoked_at is None and one.judge is not Judge.USER:
            draft.revocations[one.id] = Revocation(one.id, one.left)


def _said_of(draft: Draft) -> set[StatementId]:
    every: list[Claim | End | Denial] = [*draft.claims.values(), *draft.ends.values()]
    return {one.statement for one in (*every, *draft.denials.values())}


def _said_in(records: Records) -> set[StatementId]:
    """What an episode says something of, but for passages that it takes back."""
    ends = [end for end in records.ends if not withdraws(end)]
    every: list[Claim | End | Denial] = [*records.claims, *ends, *records.denials]
    return {one.statement for one in every if one.revoked_at is None}


def _without(draft: Draft, before: Before, gone: Set[StatementId]) -> Draft:
    """The draft as if it revoked what is recorded of some statements."""
    stored = before.stored
    every: list[Claim | End | Denial] = [*stored.claims, *stored.ends, *stored.denials]
    revoked = {one.id: Revocation(one.id, one.statement) for one in every if one.statement in gone}
    return replace(draft, revocations=revoked, stored=stored)


def _told_by_others(stored: Records, episode: EpisodeId) -> set[StatementId]:
    every: list[Claim | End | Denial] = [*stored.claims, *stored.ends, *stored.denials]
    return {
        one.statement for one in every if one.revoked_at is None and one.source.episode not in (None, episode)
    }


def _withdraw(scope: Scope, draft: Draft, gone: Sequence[Claim], anew: Anew) -> None:
    """Takes passages back that later versions leave out, of what they say now; of nothing that they said.

    `gone`: claims that are revoked.
    """
    known = {
        (end.statement, end.source.passage): end
        for end in draft.stored.ends
        if end.revoked_at is None and withdraws(end)
    }
    for claim in list(draft.claims.values()):
        passage = claim.source.passage
        by = None if passage is None else anew.withdrawals.get(passage)
        if by is not None and (claim.statement, passage) not in known:
            made = withdraw(scope, draft, claim.statement, by)
            if any(end.id == made for end in draft.stored.ends):
                again = RecordId(derive_id(scope, "anew", made, anew.commit))
                draft.ends[again] = replace(draft.ends.pop(made), id=again)
    counting = [one for one in draft.stored.claims if one.revoked_at is None]
    standing = [one for one in counting if one.id not in draft.revocations]
    left = {(one.statement, one.source.passage) for one in (*standing, *draft.claims.values())}
    for one in gone:
        end = known.get((one.statement, one.source.passage))
        if end is not None and (one.statement, one.source.passage) not in left:
            draft.revocations[end.id] = Revocation(end.id, end.statement)
