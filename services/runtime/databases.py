"""The SQL databases of the services, as engines with the schemas of their stores."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from services.runtime.settings import ServiceSettings
from services.stores.graph.sql import schema as graph
from services.stores.memory.sql import schema as memory
from services.stores.sql.engine import engine_for
from services.stores.sql.migrations import Schema


def graph_database(settings: ServiceSettings) -> tuple[AsyncEngine, Schema]:
    """The graph's. The caller disposes of the engine."""
    url = settings.sql_url(settings.graph_url, "graph.db")
    return engine_for(url, settings.postgres), graph.SCHEMA


def memory_database(settings: ServiceSettings) -> tuple[AsyncEngine, Schema]:
    """Memory's. The caller disposes of the engine."""
    url = settings.sql_url(settings.memory_url, "memory.db")
    return engine_for(url, settings.postgres), memory.SCHEMA


def service_databases(settings: ServiceSettings) -> Sequence[tuple[AsyncEngine, Schema]]:
    """All of them; a graph in NebulaGraph is none."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    graphs = [graph_database(settings)] if settings.graph == "sql" else []
    return (*graphs, memory_database(settings))
