"""Embedding an installation anew: the stores its settings name, with the embedder that is to take over."""

from collections.abc import Callable
from contextlib import AsyncExitStack

from services.runtime.resources import open_resources
from services.runtime.settings import ServiceSettings
from services.stores.vectors.milvus import MilvusVectorStore
from services.stores.vectors.reembed import Refill, Scopes, reembed
from services.stores.vectors.sources import Sources


async def reembed_all(
    settings: ServiceSettings, scopes: Scopes, keep: bool, say: Callable[[str], None]
) -> int:
    """Replaces all vectors by those of the settings' embedder; answers how many rows were written.

    Raises as `open_resources` and `reembed` do, which tells more.
    """
    async with AsyncExitStack() as stack:
        opened = await open_resources(settings, stack, filling=True)
        assert isinstance(opened.vectors, MilvusVectorStore)
        memory = opened.memory
        sources = Sources(opened.graph, memory.text, memory.voice)
        refill = Refill(sources, opened.embedder.passages, opened.vectors)
        # Milvus Lite was started here, so no other process uses it.
        pause = settings.vectors.pause_seconds if settings.vectors_uri else 0.0
        return await reembed(refill, opened.vectors.models, scopes, pause, keep, say)
