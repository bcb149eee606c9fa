"""Resources: the stores, engine and embedder of one process, opened and closed together."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import structlog

from services.domain.instants import Instant
from services.llm.port import Embedder, Engine
from services.recall.settings import RecallSettings
from services.runtime.clock import clock as clock
from services.runtime.databases import graph_database, memory_database
from services.runtime.models import open_embedder, open_engine
from services.runtime.settings import ServiceSettings
from services.stores.errors import StoreUnavailable
from services.stores.graph.nebula.bootstrap import bootstrap
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.graph.port import GraphStore
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.sql import SqlMemory
from services.stores.sql.migrations import migrates
from services.stores.vectors.errors import EmbedderDiffers
from services.stores.vectors.lite import LiteServer
from services.stores.vectors.options import MilvusOptions
from services.stores.vectors.port import VectorStore

log = structlog.get_logger(__name__)

LITE_FOLDER = "vectors"
LITE_LOG = "logs/milvus-lite.log"


@dataclass(frozen=True, slots=True)
class Resources:
    """What the service classes are built on. `now` is the clock."""

    graph: GraphStore
    memory: SqlMemory
    vectors: VectorStore
    engine: Engine
    embedder: Embedder
    now: Callable[[], Instant]
    recall: RecallSettings = field(default_factory=RecallSettings)


@dataclass(frozen=True, slots=True)
class WritingResources:
    """What a service is built on that writes of facts which it is given: it reads no graph and no vectors."""

    memory: SqlMemory
    engine: Engine
    embedder: Embedder
    now: Callable[[], Instant]


async def open_writing(
    settings: ServiceSettings, stack: AsyncExitStack, now: Callable[[], Instant] = clock
) -> WritingResources:
    """Opens memory and the models; `stack` closes them. Raises as `open_resources` does."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    engine = open_engine(settings, stack)
    embedder = open_embedder(settings, stack)
    return WritingResources(await _memory(settings, stack), engine, embedder, now)


async def open_resources(
    settings: ServiceSettings,
    stack: AsyncExitStack,
    now: Callable[[], Instant] = clock,
    filling: bool = False,
) -> Resources:
    """Opens everything the settings name; `stack` closes it, last opened first.

    `filling`: the vectors are to be made, beside those in use.

    Raises StoreUnavailable, SchemaUnusable, LiteServerError or EngineError when a part can't be had, and
    EmbedderDiffers when the vectors were made by another embedder.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    engine = open_engine(settings, stack)
    embedder = open_embedder(settings, stack)
    graph = await _graph(settings, stack)
    memory = await _memory(settings, stack)
    vectors = await _vectors(settings, embedder, stack, filling)
    return Resources(graph, memory, vectors, engine, embedder, now, settings.recall)


async def prepare(settings: ServiceSettings, stack: AsyncExitStack) -> ServiceSettings:
    """Makes ready what several processes will share, once: Milvus Lite's server, the tables.

    Answers the settings by which they find it; `stack` stops the server. Raises as `open_resources` does.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    uri = settings.vectors_uri or await _lite(settings, stack)
    shared = settings.model_copy(update={"data_dir": settings.data_dir.resolve(), "vectors_uri": uri})
    async with AsyncExitStack() as once:
        await open_resources(shared, once)
    return shared


async def bootstrap_graph(settings: ServiceSettings) -> Sequence[str]:
    """Makes the cluster of the settings ready; answers what was done, a line each. Raises StoreError."""
    if settings.nebula is None:
        return ["no NebulaGraph cluster is set: `palimpsest-admin migrate` makes the tables of graphs in SQL"]
    return await bootstrap(settings.nebula)


async def _graph(settings: ServiceSettings, stack: AsyncExitStack) -> GraphStore:
    if settings.graph == "nebula":
        assert settings.nebula is not None, "the settings' own rule"
        nebula = await NebulaGraphStore.open(settings.nebula)
        stack.push_async_callback(nebula.close)
        return nebula
    engine, _ = graph_database(settings)
    stack.push_async_callback(engine.dispose)
    return await SqlGraphStore.open(engine, migrate=migrates(settings.migrate_at_start, engine))


async def _memory(settings: ServiceSettings, stack: AsyncExitStack) -> SqlMemory:
    engine, _ = memory_database(settings)
    stack.push_async_callback(engine.dispose)
    return await SqlMemory.open(engine, migrate=migrates(settings.migrate_at_start, engine))


async def _vectors(
    settings: ServiceSettings, embedder: Embedder, stack: AsyncExitStack, filling: bool
) -> VectorStore:
    # Half a second of a processor and 60 MB, for pandas most of it: only who opens vectors needs that.
    from services.stores.vectors.milvus import MilvusVectorStore

    uri = settings.vectors_uri or await _lite(settings, stack)
    vectors = MilvusVectorStore(_options(settings, uri, embedder), filling)
    stack.push_async_callback(vectors.close)
    if filling:
        return vectors
    try:
        await vectors.ready()
    except EmbedderDiffers:
        raise
    except StoreUnavailable as error:
        # Reads may do without it and ingestion waits for it; it is connected to when it is there.
        log.warning("the vectors store can't be reached yet", error=str(error))
    return vectors


def _options(settings: ServiceSettings, uri: str, embedder: Embedder) -> MilvusOptions:
    token = settings.vectors_token.get_secret_value()
    return settings.vectors.options(uri, token, embedder.name, embedder.dimension)


async def _lite(settings: ServiceSettings, stack: AsyncExitStack) -> str:
    """Starts Milvus Lite's server; answers where it is."""
    server = await asyncio.to_thread(
        LiteServer.start, settings.data_dir / LITE_FOLDER, settings.data_dir / LITE_LOG
    )
    stack.push_async_callback(asyncio.to_thread, server.stop)
    return server.uri
