"""Voice: a new sentence of the user's voice is a duplicate of one that was said, replaces one, or is new."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from services.domain.facts import VoiceFact
from services.domain.ids import EpisodeId, PassageId, RecordId, Revision, VoiceId, derive_id
from services.domain.instants import Instant
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd, VoiceKind
from services.domain.names import name_key
from services.domain.scope import Scope
from services.domain.voice import claims_at, held
from services.llm.port import Embedder
from services.llm.tasks import JudgeVoice, KnownFact, Pair, Setting
from services.resolver.change import Draft
from services.resolver.deciding import Action, By, by_model, decide
from services.resolver.memo import Memo, VoicePair
from services.stores.memory.port import VoiceStore
from services.stores.vectors.port import Collection, VectorFilter, VectorStore

MAX_CANDIDATES = 5
MIN_COSINE = 0.75
"""From which two sentences are compared. One that says of itself that it ends an earlier one is compared with
its nearest, however near: "I hate sushi now" and "I love sushi" share few words and little meaning."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A classified voice fact with where it was said."""

    fact: VoiceFact
    kind: VoiceKind
    passage: PassageId
    attested_at: Instant


@dataclass(frozen=True, slots=True)
class Heard:
    """What was spoken; `task` compares it with what was said before, None where nothing was like it.

    `keys` stand for the task's pairs, in their order; `before` are the sentences that it compares with.
    """

    spoken: Sequence[Spoken] = ()
    task: JudgeVoice | None = None
    keys: Sequence[VoicePair] = ()
    before: Mapping[VoiceId, Sequence[VoiceClaim]] = field(default_factory=dict)


class Voice:
    """Drafts voice aspects, their claims and ends."""

    def __init__(
        self,
        voice: VoiceStore,
        vectors: VectorStore,
        embedder: Embedder,
        now: Callable[[], Instant],
    ) -> None:
        self._voice = voice
        self._vectors = vectors
        self._embedder = embedder
        self._now = now

    async def find(
        self,
        scope: Scope,
        known: Revision,
        spoken: Sequence[Spoken],
        setting: Setting,
        leaving: Set[VoiceId] = frozenset(),
    ) -> Heard:
        """What was said before that each may repeat or replace, but for `leaving`. Raises EngineError of
        vectors.
        """
        if not spoken:
            return Heard()
        candidates, pairs = await self._pairs(scope, known, spoken, leaving)
        if not pairs:
            return Heard(spoken)
        shown = [KnownFact(aspect.text, claims_at(aspect, known)[0].attested_at) for aspect in candidates]
        task = JudgeVoice([one.fact for one in spoken], shown, pairs, setting)
        keys = [(_id(scope, spoken[pair.new]), candidates[pair.candidate].id) for pair in pairs]
        return Heard(spoken, task, keys, {one.id: claims_at(one, known) for one in candidates})

    async def record(self, scope: Scope, draft: Draft, heard: Heard, episode: EpisodeId, memo: Memo) -> None:
        """Drafts what was spoken, as it was judged."""
        offered = set(heard.keys)
        told = await self._told(scope, heard.spoken)
        for one in heard.spoken:
            said = _id(scope, one)
            mine = [
                (old, judged)
                for (new, old), judged in memo.voice.items()
                if new == said and (new, old) in offered and judged is not None
            ]
            same = next((old for old, judged in mine if judged.verdict.duplicate), None)
            voice = same or self._aspect(scope, draft, one, told)
            self._claim(scope, draft, voice, one, episode)
            for old, judged in mine:
                verdict, by = judged.verdict, by_model(judged.by)
                ends = not verdict.duplicate and old != voice
                if ends:
                    before = [claim for claim in heard.before[old] if claim.episode != episode]
                    self._replace(scope, draft, (old, before), (voice, one), episode, verdict.why)
                if ends or verdict.duplicate:
                    self._decide(scope, draft, old, voice, by, "replaced" if ends else "duplicate")

    def _decide(self, scope: Scope, draft: Draft, old: VoiceId, new: VoiceId, by: By, why: str) -> None:
        told = replace(by, why=why)
        decide(scope, draft, self._now(), Action.JUDGE_VOICE, old, told, new if new != old else "")

    async def _told(self, scope: Scope, spoken: Sequence[Spoken]) -> frozenset[VoiceId]:
        """Which of the sentences, word for word, the graph has already."""
        ids = list({_id(scope, one) for one in spoken})
        return frozenset(aspect.id for aspect in await self._voice.aspects(scope, ids) if aspect.text)

    async def _pairs(
        self, scope: Scope, known: Revision, spoken: Sequence[Spoken], leaving: Set[VoiceId]
    ) -> tuple[Sequence[VoiceAspect], list[Pair]]:
        vectors = await self._embedder.passages([one.fact.text for one in spoken])
        hits = await self._vectors.search(
            scope, Collection.VOICE, list(vectors), MAX_CANDIDATES * 2, VectorFilter()
        )
        wanted = [
            [VoiceId(hit.id) for hit in found if one.fact.ends_earlier or hit.score >= MIN_COSINE]
            for one, found in zip(spoken, hits, strict=True)
        ]
        ids = [id for id in dict.fromkeys(voice for found in wanted for voice in found) if id not in leaving]
        held = {
            aspect.id: aspect for aspect in await self._voice.aspects(scope, ids) if _claimed(aspect, known)
        }
        candidates = list(held.values())
        positions = {aspect.id: at for at, aspect in enumerate(candidates)}
        pairs = [
            Pair(at, positions[voice])
            for at, (one, found) in enumerate(zip(spoken, wanted, strict=True))
            for voice in [v for v in found if v in held and held[v].kind == one.kind][:MAX_CANDIDATES]
        ]
        return candidates, pairs

    @staticmethod
    def _aspect(scope: Scope, draft: Draft, one: Spoken, told: frozenset[VoiceId]) -> VoiceId:
        """The aspect of a sentence that no candidate is said to duplicate; equal keys are one."""
        made = _id(scope, one)
        if made not in draft.voice and made not in told:
            draft.voice[made] = VoiceAspect(made, one.kind, one.fact.text, created_at=draft.revision)
        return made

    @staticmethod
    def _claim(scope: Scope, draft: Draft, voice: VoiceId, one: Spoken, episode: EpisodeId) -> None:
        made = RecordId(derive_id(scope, "voice-claim", voice, episode, one.passage, one.fact.quote))
        draft.voice_claims[made] = VoiceClaim(
            made, voice, episode, one.passage, one.fact.quote, one.attested_at, draft.revision
        )

    def _replace(
        self,
        scope: Scope,
        draft: Draft,
        known: tuple[VoiceId, Sequence[VoiceClaim]],
        new: tuple[VoiceId, Spoken],
        episode: EpisodeId,
        why: str,
    ) -> None:
        """Of two sentences that do not go together the one that was said later ends the other, whichever
        text was read first.
        """
        (old, claims), (voice, one) = known, new
        later = [claim for claim in claims if claim.attested_at > one.attested_at]
        if not claims or len(later) < len(claims):
            self._end(scope, draft, old, voice, one.attested_at, episode, why)
        for claim in later:
            self._end(scope, draft, voice, old, claim.attested_at, claim.episode)

    @staticmethod
    def _end(
        scope: Scope,
        draft: Draft,
        old: VoiceId,
        by: VoiceId,
        at: Instant,
        episode: EpisodeId,
        why: str = "",
    ) -> None:
        made = RecordId(derive_id(scope, "voice-end", old, by, episode))
        draft.voice_ends[made] = VoiceEnd(made, old, at, by, episode, why, draft.revision)


def _id(scope: Scope, one: Spoken) -> VoiceId:
    return VoiceId(derive_id(scope, "voice", one.kind, name_key(one.fact.text)))


def _claimed(aspect: VoiceAspect, known: Revision) -> bool:
    """Ended ones too: what ended it may be deleted, and nobody is asked again."""
    return held(aspect, known) is not None
