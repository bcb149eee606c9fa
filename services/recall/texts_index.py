"""TextsIndex: one graph's passages and voice aspects, searchable by words; read from the memory stores."""

import asyncio
from collections.abc import Callable, Sequence

from services.domain.headings import is_heading
from services.domain.ids import Revision
from services.domain.memory import Passage, VoiceAspect
from services.domain.recalled import is_recalled
from services.domain.scope import Scope
from services.recall.bm25 import Bm25, Scores
from services.recall.terms import terms
from services.recall.turns import Turns
from services.stores.memory.port import TextStore, VoiceStore
from services.stores.paging import Page

PAGE = 1_000
"""Passages or voice aspects read at a time."""

Version = tuple[Revision, int]
"""The published revision, and how many episodes there are: one of the two tells every change."""


class TextsIndex:
    """Lexical postings of passages, with who stands beside whom, and of voice aspects.

    Built anew when an episode has gone, so that nothing of its words stays. Between two awaits it is all
    of one moment; after the next it may be larger.
    """

    def __init__(
        self, text: TextStore, voice: VoiceStore, scope: Scope, on_gone: Callable[[Scope], None]
    ) -> None:
        """`on_gone` is told when text has been deleted: what else was made of it must go."""
        self._text = text
        self._voice_store = voice
        self._scope = scope
        self._on_gone = on_gone
        self._version: Version | None = None
        self.passages = Bm25()
        self.voice = Bm25()
        self.turns = Turns()

    @property
    def bytes(self) -> int:
        return self.passages.bytes + self.voice.bytes + self.turns.bytes

    async def bring_forward(self, revision: Revision) -> None:
        """Reads what has come, and what has gone. Raises StoreUnavailable, and can then be repeated."""
        version = (revision, await self._text.count_episodes(self._scope))
        if version == self._version:
            return
        passages = [passage for passage in await self._all_passages() if is_searchable(passage)]
        found = {passage.id for passage in passages}
        gone = any(id not in found for id in self.passages.ids)
        fresh = [passage for passage in passages if gone or passage.id not in self.passages]
        cut = await asyncio.to_thread(lambda: [passage_terms(passage) for passage in fresh])
        voice = await self._all_voice(revision)
        if gone:
            self.passages, self.turns = Bm25(), Turns()
            self._on_gone(self._scope)
        for passage, words in zip(fresh, cut, strict=True):
            self.turns.add(passage)
            self.passages.add(passage.id, words)
        self.voice = voice
        self._version = version

    def score_of(self, scores: Scores, id: str) -> float:
        """A passage's score in an array of the passages' scores; 0 for one that is not here."""
        place = self.passages.place(id)
        return 0.0 if place is None else float(scores[place])

    async def _all_passages(self) -> list[Passage]:
        passages: list[Passage] = []
        after = ""
        while True:
            listed = await self._text.scan_passages(self._scope, Page(PAGE, after))
            passages += listed.items
            if not listed.after:
                return passages
            after = listed.after

    async def _all_voice(self, revision: Revision) -> Bm25:
        index = Bm25()
        after = ""
        while True:
            listed = await self._voice_store.list_aspects(self._scope, (), revision, Page(PAGE, after))
            for aspect, words in _cut(listed.items):
                index.add(aspect.id, words)
            if not listed.after:
                return index
            after = listed.after


def is_searchable(passage: Passage) -> bool:
    """False for headings, what is held back, and what this memory recalled: it is no evidence of itself."""
    return not passage.held and not is_heading(passage.text) and not is_recalled(passage.text)


def passage_terms(passage: Passage) -> list[str]:
    """The words of a passage; who spoke is one of them."""
    return terms(passage.with_speaker)


def _cut(aspects: Sequence[VoiceAspect]) -> list[tuple[VoiceAspect, list[str]]]:
    return [(aspect, terms(aspect.text)) for aspect in aspects if aspect.text]
