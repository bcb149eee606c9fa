"""TextsIndex: one graph's passages and voice aspects in memory, searched by words and vectors."""

import asyncio
from collections.abc import Sequence
from typing import Self

from services.domain.headings import is_heading
from services.domain.ids import EpisodeId, Revision
from services.domain.memory import Passage, VoiceAspect, spoken
from services.domain.recalled import is_recalled
from services.domain.scope import Scope
from services.domain.voice import claims_at
from services.recall.behind import Behind
from services.recall.bm25 import Bm25, Scores
from services.recall.hot.changes import changes_since
from services.recall.hot.texts import HotTexts
from services.recall.hot.vectors import HotVectors
from services.recall.hot.voices import HotVoices
from services.recall.revisions import Known
from services.recall.states import State, nested, within
from services.recall.terms import terms
from services.recall.turns import Turns
from services.stores.memory.following import UNCHANGED, PlainPassage, Said, TextChanges
from services.stores.memory.port import RevisionLog, TextStore, VoiceStore
from services.stores.paging import Page
from services.stores.vectors.port import Collection, Hit, Vector, VectorFilter, VectorStore

PAGE = 1_000
"""Episodes or voice aspects read at a time."""


class TextsIndex:
    """Passages with their episodes, who stands beside whom, and voice aspects with all their records.

    What comes is added; loaded anew when an episode has gone, so that nothing of its words stays. Between two
    awaits it is all of one moment; after the next it may be larger.
    """

    def __init__(
        self,
        text: TextStore,
        voice: VoiceStore,
        log: RevisionLog,
        vectors: VectorStore,
        scope: Scope,
        max_bytes: int,
        behind: Behind,
    ) -> None:
        """`max_bytes`: vectors are held while they fit in that beside all else; `behind` the answers where
        they are many.
        """
        self._behind = behind
        self._text = text
        self._voice_store = voice
        self._log = log
        self._vectors = vectors
        self._scope = scope
        self._max_bytes = max_bytes
        self._seen = UNCHANGED
        self._revision: Revision | None = None
        self._hold(HotTexts())
        self.voices = HotVoices()
        self.passages = Bm25()
        self.voice = Bm25()
        self.turns = Turns()
        self._near_voice = HotVectors(vectors, behind, scope, Collection.VOICE, self.voices.text_digest)

    def _hold(self, texts: HotTexts) -> None:
        self.texts = texts
        self._near_passages = HotVectors(
            self._vectors, self._behind, self._scope, Collection.PASSAGES, texts.text_digest
        )

    @property
    def rows(self) -> int:
        return len(self.texts)

    @property
    def bytes(self) -> int:
        return self._compact_bytes + self._near_passages.bytes + self._near_voice.bytes

    @property
    def _compact_bytes(self) -> int:
        words = self.passages.bytes + self.voice.bytes + self.turns.bytes
        return words + self.texts.bytes + self.voices.bytes

    async def load(self, known: Known) -> None:
        """From the stores, but no vectors. Raises StoreUnavailable, and is then to be thrown away."""
        await self._follow_texts(known.texts)
        await self._follow_voice(known.current)

    async def restore(self, state: State) -> None:
        """From the state of another one; voice aspects are read when it is brought forward."""
        texts, self.passages, self.turns = await asyncio.to_thread(
            lambda: (
                HotTexts(within("texts", state)),
                Bm25(within("passages", state)),
                Turns(within("turns", state)),
            )
        )
        self._hold(texts)
        (self._seen,) = state["seen"]

    @property
    def state(self) -> State:
        """All that it holds, voice aspects and vectors left out, as it is now."""
        return {
            "seen": [self._seen],
            **nested("texts", self.texts.state),
            **nested("passages", self.passages.state),
            **nested("turns", self.turns.state),
        }

    async def take_over(self, before: Self) -> None:
        """The vectors that another index of these texts has of the same ones; before any are read."""
        if self._has_room:
            await self._near_passages.take_over(self.texts.ids, before._near_passages, before.texts.ids)
            await self._near_voice.take_over(self.voices.ids, before._near_voice, before.voices.ids)

    async def settled(self) -> None:
        """Waits for vectors that are being loaded."""
        await self._near_passages.loaded()
        await self._near_voice.loaded()

    async def bring_forward(self, known: Known) -> bool:
        """Reads what has come. False when something went, and all is to be loaded anew.

        Raises StoreUnavailable, and can then be repeated.
        """
        if known.texts != self._seen and not await self._follow_texts(known.texts):
            return False
        if await self._let_go():
            return False
        if self._revision is None or known.current > self._revision:
            await self._follow_voice(known.current)
        await self._follow_vectors()
        return True

    async def _follow_texts(self, state: TextChanges) -> bool:
        """Adds what came. False when something went: whatever held it must go."""
        kept = await self._text.kept(self._scope)
        held = self.texts.episodes_held
        if not held <= set(kept):
            return False
        fresh = [id for id in kept if id not in held]
        for start in range(0, len(fresh), PAGE):
            chunk = fresh[start : start + PAGE]
            await self._add(chunk, await self._text.passages_in(self._scope, chunk))
        if len(fresh) > PAGE:
            await asyncio.to_thread(self.passages.sort_in)
        self._seen = state
        return True

    async def _let_go(self) -> bool:
        """Whether something is held back no longer: that comes without a revision."""
        if not self.texts.held:
            return False
        held = await self._text.passages(self._scope, self.texts.held)
        return not all(passage.held for passage in held)

    async def _add(
        self, episodes: Sequence[EpisodeId], passages: Sequence[tuple[PlainPassage, Said]]
    ) -> None:
        # One that was deleted since it was listed has none: that it is held is met as its going.
        told = [(one, said, not one.held and is_telling(one.text)) for one, said in passages]
        searched = [one for one, _, wanted in told if wanted]
        cut = await asyncio.to_thread(lambda: [terms(spoken(one.speaker, one.text)) for one in searched])
        self.texts.put(episodes, told)
        self.turns.add_all(searched)
        self.passages.add_all(zip((one.id for one in searched), cut, strict=True))

    async def _follow_voice(self, revision: Revision) -> None:
        changes = None
        if self._revision is not None:
            changes = await changes_since(self._log, self._scope, self._revision, revision)
        if changes is None:
            await self._read_all_voice()
        elif changes.voice:
            self._put_voice(await self._voice_store.aspects(self._scope, sorted(changes.voice)))
        if changes is None or changes.voice:
            index = Bm25()
            for aspect in self.voices:
                if aspect.text and claims_at(aspect, revision):
                    index.add(aspect.id, terms(aspect.text))
            self.voice = index
        self._revision = revision

    async def _read_all_voice(self) -> None:
        after = ""
        while True:
            listed = await self._voice_store.scan(self._scope, Page(PAGE, after))
            self._put_voice(listed.items)
            if not listed.after:
                return
            after = listed.after

    def _put_voice(self, aspects: Sequence[VoiceAspect]) -> None:
        for place in self.voices.put(aspects):
            self._near_voice.drop(place)

    def score_of(self, scores: Scores, id: str) -> float:
        """A passage's score in an array of the passages' scores; 0 for one that is not here."""
        place = self.passages.place(id)
        return 0.0 if place is None else float(scores[place])

    # Vectors

    async def nearest(
        self, collection: Collection, vectors: Sequence[Vector], limit: int, where: VectorFilter
    ) -> list[list[Hit]] | None:
        """The nearest of its passages or sentences to each vector; None while it lacks any of theirs."""
        near = self._near_passages if collection is Collection.PASSAGES else self._near_voice
        if not near.whole:
            return None
        ids: Sequence[str] = self.voices.ids
        mask = self.voices.searched(where)
        if collection is Collection.PASSAGES:
            ids, mask = self.texts.ids, self.texts.searched(where)
        return await near.search(ids, vectors, limit, mask)

    @property
    def _has_room(self) -> bool:
        """Whether vectors fit beside all else."""
        rows = len(self.texts) + len(self.voices)
        return self._compact_bytes + rows * self._vectors.dimension * 4 <= self._max_bytes

    async def _follow_vectors(self) -> None:
        if not self._has_room:
            return
        await self._near_passages.follow(self.texts.ids, self.texts.searchable)
        await self._near_voice.follow(self.voices.ids, self.voices.searched(VectorFilter()))


def is_searchable(passage: Passage) -> bool:
    """False for headings, what is held back, and what this memory recalled: it is no evidence of itself."""
    return not passage.held and is_telling(passage.text)


def is_telling(text: str) -> bool:
    """The same of a text that is not held back."""
    return not is_heading(text) and not is_recalled(text)


def passage_terms(passage: Passage) -> list[str]:
    """The words of a passage; who spoke is one of them."""
    return terms(passage.with_speaker)
