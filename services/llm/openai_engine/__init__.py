"""The engine behind any OpenAI-compatible endpoint. The only rooms that import `openai` are here."""

from services.llm.openai_engine.endpoint import Endpoint
from services.llm.openai_engine.engine import OpenAIEngine

__all__ = ["Endpoint", "OpenAIEngine"]
