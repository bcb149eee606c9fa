"""The offline engine: rules over a small English parser. It needs no key, no network, and says so."""

from services.llm.offline.engine import OfflineEngine

__all__ = ["OfflineEngine"]
