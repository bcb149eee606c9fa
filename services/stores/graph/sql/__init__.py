"""The graph in SQL tables: SQLite embedded, PostgreSQL for small installations."""

from services.stores.graph.sql.store import SqlGraphStore

__all__ = ["SqlGraphStore"]
