"""The memory port in SQL tables: SQLite embedded, PostgreSQL in production."""

from services.stores.memory.sql.store import SqlMemory

__all__ = ["SqlMemory"]
