"""The model side of a process: the engine and the embedder that the settings name."""

from contextlib import AsyncExitStack

from services.llm.port import Embedder, Engine
from services.runtime.settings import ServiceSettings

# What a setting chooses is imported where it is chosen: loading the client library of OpenAI takes a
# processor most of a second, in each replica.


def open_engine(settings: ServiceSettings, stack: AsyncExitStack) -> Engine:
    """The engine; `stack` closes it."""
    if settings.engine == "openai":
        from services.llm.openai_engine import OpenAIEngine

        assert settings.model is not None, "checked by the settings"
        remote = OpenAIEngine(settings.model)
        stack.push_async_callback(remote.aclose)
        return remote
    from services.llm.offline import OfflineEngine

    return OfflineEngine()


def open_embedder(settings: ServiceSettings, stack: AsyncExitStack) -> Embedder:
    """The embedder; `stack` closes it."""
    if settings.embedder == "openai":
        from services.llm.openai_embedder import OpenAIEmbedder

        assert settings.embedding is not None, "checked by the settings"
        remote = OpenAIEmbedder(settings.embedding)
        stack.push_async_callback(remote.aclose)
        return remote
    from services.llm.local_embedder import LocalEmbedder

    local = LocalEmbedder(settings.local_embedder)
    stack.push_async_callback(local.aclose)
    return local
