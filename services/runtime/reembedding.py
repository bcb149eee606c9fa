"""Embedding an installation anew: the stores its settings name, with the embedder that is to take over."""

from collections.abc import Callable
from contextlib import AsyncExitStack

from services.runtime.resources import open_resources
from services.runtime.settings import ServiceSettings
from services.stores.vectors.reembed import Refill, Scopes, reembed
from services.stores.vectors.sources import Sources


async def reembed_all(
    settings: ServiceSettings,
    scopes: Scopes,
    keep: bool,
    say: Callable[[str], None],
    ask: Callable[[str, str], None],
) -> int:
    """Replaces all vectors by those of the settings' embedder; answers how many rows were written.

    `ask` is told the embedder in use and the new one where they differ, and stops it by raising. Raises as
    `open_resources` and `reembed` do, which tells more.
    """
    from services.stores.vectors.milvus import MilvusVectorStore

    async with AsyncExitStack() as stack:
        opened = await open_resources(settings, stack, filling=True)
        assert isinstance(opened.vectors, MilvusVectorStore)
        models, ours = opened.vectors.models, opened.vectors.fingerprint
        if (live := await models.in_use()) not in ("", ours):
            ask(live, ours)
        memory = opened.memory
        sources = Sources(opened.graph, memory.text, memory.voice, memory.archive)
        refill = Refill(sources, opened.embedder.passages, opened.vectors)
        # Milvus Lite was started here, so no other process uses it.
        pause = settings.vectors.pause_seconds if settings.vectors_uri else 0.0
        return await reembed(refill, models, scopes, pause, keep, say)
