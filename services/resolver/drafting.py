"""Drafting: what a staged chunk comes to before it is published: records of its facts, and verdicts."""

from collections.abc import Callable, Mapping, Sequence

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.errors import EpisodeNotFound
from services.domain.facts import DropReason
from services.domain.ids import EpisodeId, PassageId, Revision, StatementId
from services.domain.instants import Instant
from services.domain.memory import Episode, Passage
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.llm.port import Engine
from services.llm.tasks import Profile, Reflect, Setting
from services.resolver.asking import Asking, Offers
from services.resolver.change import Draft, Dropped
from services.resolver.deciding import TEXT, decide_said
from services.resolver.memo import Memo, Noise
from services.resolver.naming import Naming
from services.resolver.rereading import Anew, Leaving, Rereading
from services.resolver.said import UNREAD, Drafter, Earlier, Said, check, said_of_fact
from services.resolver.sameness import Chunk, Sameness
from services.resolver.verdicts import Verdicts
from services.resolver.voice import Spoken, Voice
from services.stores.graph.port import GraphStore
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import TextStore
from services.wire.facts import setting_in, voice_in, world_in


class Drafting:
    """Makes drafts of chunks. What is to be judged of one is asked at once: see asking.py."""

    def __init__(
        self,
        graph: GraphStore,
        text: TextStore,
        lexicons: Lexicons,
        engine: Engine,
        judges: tuple[Sameness, Verdicts, Voice],
        rereading: Rereading,
        vocabulary: Vocabulary,
        now: Callable[[], Instant],
    ) -> None:
        self._graph = graph
        self._text = text
        self._lexicons = lexicons
        self._asking = Asking(engine)
        self._sameness, self._verdicts, self._voice = judges
        self._rereading = rereading
        self._vocabulary = vocabulary
        self._now = now

    async def kept(self, scope: Scope, ids: Sequence[EpisodeId]) -> Sequence[Episode]:
        """Episodes whose text is there. Raises EpisodeNotFound."""
        found = await self._text.episodes(scope, ids)
        there = {episode.id for episode in found if episode.deleted_at is None}
        for missing in [id for id in ids if id not in there]:
            raise EpisodeNotFound(missing)
        return found

    async def drafter(self, scope: Scope, known: Revision, draft: Draft, before: Earlier = UNREAD) -> Drafter:
        naming = Naming(self._graph, await self._lexicons.at(scope, known), scope, known, draft)
        return Drafter(self._graph, scope, naming, draft, before)

    async def draft(
        self,
        scope: Scope,
        id: EpisodeId,
        staged: pb.StoreFactsRequest,
        revisions: tuple[Revision, Revision],
        memo: Memo,
        anew: Anew | None = None,
    ) -> Draft:
        """The draft of a chunk for a revision (second) from what is known at another (first).

        `memo` keeps what was asked: a draft for a later revision asks only what is new. `anew`: in place of
        what the text said before. Raises EngineError, EpisodeNotFound.
        """
        known, revision = revisions
        draft = Draft(revision)
        # Read for every attempt: an episode may be deleted while its facts wait.
        (episode,) = await self.kept(scope, [id])
        passages = {passage.id: passage for passage in await self._text.passages_of(scope, id)}
        noise = memo.noise or Noise()
        said = _said(staged, noise, episode, passages, self._vocabulary, draft)
        spoken = _spoken(staged, noise, episode, passages, draft)
        before = None if anew is None else await self._rereading.before(scope, id)
        earlier = UNREAD if before is None else before.earlier
        await (await self.drafter(scope, known, draft, earlier)).add(said)
        if staged.HasField("setting"):
            setting = setting_in(staged.setting)
            offered = (fact.statement_id for fact in staged.setting.known_facts if fact.statement_id)
            draft.context = tuple(StatementId(id) for id in dict.fromkeys(offered))
            chunk = Chunk(id, setting, [passage.with_speaker for passage in passages.values()])
            leaving = Leaving() if before is None else await self._rereading.leaving(scope, draft, before)
            if not await self._judged(scope, draft, known, chunk, spoken, staged, memo, leaving):
                return await self.draft(scope, id, staged, revisions, memo, anew)
        if before is not None and anew is not None:
            await self._rereading.replace(scope, draft, before, anew, self._now())
        decide_said(scope, draft, self._now(), TEXT)
        draft.receipts = list(memo.receipts)
        return draft

    async def _judged(
        self,
        scope: Scope,
        draft: Draft,
        known: Revision,
        chunk: Chunk,
        spoken: Sequence[Spoken],
        staged: pb.StoreFactsRequest,
        memo: Memo,
        leaving: Leaving,
    ) -> bool:
        """Drafts what was judged. False where some facts turned out to be noise: draft anew without."""
        setting, now, noise = chunk.setting, self._now(), memo.noise
        alike = await self._sameness.find(scope, draft, known, chunk, leaving.entities, leaving.back)
        supposed = () if alike is None else (self._sameness.supposed(scope, draft, alike, chunk, now),)
        to_judge = await self._verdicts.find(scope, draft, known, supposed, leaving.statements)
        heard = await self._voice.find(scope, known, spoken, setting, leaving.voice)
        offers = Offers(
            setting,
            reflect=_reflection(staged, setting),
            entities=None if alike is None else alike.task,
            entity_keys=() if alike is None else alike.keys,
            statements=to_judge.task(setting),
            statement_keys=to_judge.statement_keys,
            predicate_keys=to_judge.predicate_keys,
            voice=heard.task,
            voice_keys=heard.keys,
        )
        await self._asking(scope, offers, memo)
        if noise is None and memo.noise is not None and memo.noise != Noise():
            return False
        if alike is not None:
            self._sameness.record(scope, draft, alike, chunk, now, memo)
        await self._verdicts.record(scope, draft, known, to_judge, setting, chunk.episode, memo)
        await self._voice.record(scope, draft, heard, chunk.episode, memo)
        return True


def _reflection(staged: pb.StoreFactsRequest, setting: Setting) -> Reflect | None:
    """What is still to be reflected on: with the full profile that was done as the facts were drawn."""
    if setting.profile is not Profile.ECONOMY or not (staged.world or staged.voice):
        return None
    world = [world_in(message) for message in staged.world]
    return Reflect("", world, [voice_in(message) for message in staged.voice], setting)


def _said(
    staged: pb.StoreFactsRequest,
    noise: Noise,
    episode: Episode,
    passages: Mapping[PassageId, Passage],
    vocabulary: Vocabulary,
    draft: Draft,
) -> list[Said]:
    """The facts that can be recorded; the others are noted in the draft."""
    said: list[Said] = []
    for place, message in enumerate(staged.world):
        if place in noise.world:
            draft.dropped.append(Dropped(DropReason.NOT_DURABLE, message.turn))
            continue
        passage = passages.get(PassageId(message.passage_id))
        if passage is None:
            draft.dropped.append(Dropped(DropReason.UNKNOWN_TURN, message.turn))
            continue
        try:
            one = said_of_fact(world_in(message), passage.id, episode.id, _attested(passage, episode))
            check(one, vocabulary)
        except ValueError:
            draft.dropped.append(Dropped(DropReason.INVALID, message.turn))
            continue
        said.append(one)
    return said


def _spoken(
    staged: pb.StoreFactsRequest,
    noise: Noise,
    episode: Episode,
    passages: Mapping[PassageId, Passage],
    draft: Draft,
) -> list[Spoken]:
    """The sentences that can be recorded; the others are noted in the draft."""
    spoken: list[Spoken] = []
    for place, message in enumerate(staged.voice):
        if place in noise.voice:
            draft.dropped.append(Dropped(DropReason.NOT_DURABLE, message.turn))
            continue
        passage = passages.get(PassageId(message.passage_id))
        if passage is None:
            draft.dropped.append(Dropped(DropReason.UNKNOWN_TURN, message.turn))
            continue
        try:
            fact = voice_in(message)
        except ValueError:
            draft.dropped.append(Dropped(DropReason.INVALID, message.turn))
            continue
        if fact.kind is None:
            draft.dropped.append(Dropped(DropReason.UNCLASSIFIED_VOICE, message.turn))
            continue
        spoken.append(Spoken(fact, fact.kind, passage.id, _attested(passage, episode)))
    return spoken


def _attested(passage: Passage, episode: Episode) -> Instant:
    return episode.reference_time if passage.said_at is None else passage.said_at
