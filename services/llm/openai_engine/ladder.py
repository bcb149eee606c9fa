"""The ladder of structured output: JSON schema, then a tool call, then plain JSON, as each model takes it.

What a model refused once it is not asked again while the process lives.
"""

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from services.domain.scope import TenantId
from services.llm.openai_engine.endpoint import Endpoint, Meter, Reply
from services.llm.openai_engine.errors import RequestRefused


class Rung(StrEnum):
    """How the shape of an answer is asked for."""

    JSON_SCHEMA = "json_schema"
    TOOL = "tool"
    PLAIN = "plain"


_BELOW = {Rung.JSON_SCHEMA: Rung.TOOL, Rung.TOOL: Rung.PLAIN}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one model takes."""

    rung: Rung = Rung.JSON_SCHEMA
    temperature: bool = True
    limit: str = "max_tokens"

    def simpler(self, hint: str, is_structured: bool) -> "Dialect | None":
        """The next to try after a refusal that said `hint`; None when nothing is left."""
        if "temperature" in hint and self.temperature:
            return replace(self, temperature=False)
        if "max_tokens" in hint and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if is_structured and self.rung in _BELOW:
            return replace(self, rung=_BELOW[self.rung])
        return replace(self, temperature=False) if self.temperature else None


@dataclass(frozen=True, slots=True)
class Question:
    """One message to a model. `schema` is None where the answer is text."""

    name: str
    messages: tuple[dict[str, str], ...]
    schema: dict[str, Any] | None
    max_output_tokens: int


class Ladder:
    """Asks models of one endpoint, each in the dialect it takes."""

    def __init__(self, endpoint: Endpoint, rung: Rung | None) -> None:
        """`rung` None: found out for each model, from the top."""
        self._endpoint = endpoint
        self._first = Dialect(rung or Rung.JSON_SCHEMA)
        self._dialects: dict[str, Dialect] = {}

    def dialect(self, model: str) -> Dialect:
        return self._dialects.get(model, self._first)

    async def ask(self, tenant: TenantId, model: str, question: Question, meter: Meter) -> Reply:
        """The model's reply. Raises EngineError; a refusal of the lowest rung is ModelMisconfigured."""
        dialect = self.dialect(model)
        while True:
            try:
                reply = await self._endpoint.chat(tenant, _request(model, question, dialect), meter)
            except RequestRefused as refused:
                simpler = dialect.simpler(refused.hint, question.schema is not None)
                if simpler is None:
                    raise
                dialect = simpler
            else:
                # Only what then worked is remembered: a 400 of another cause must not lower a model for good.
                self._dialects[model] = dialect
                return reply


def _request(model: str, question: Question, dialect: Dialect) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": model,
        "messages": [dict(message) for message in question.messages],
        dialect.limit: question.max_output_tokens,
    }
    if dialect.temperature:
        request["temperature"] = 0
    if question.schema is None:
        return request
    match dialect.rung:
        case Rung.JSON_SCHEMA:
            shape = {"name": question.name, "schema": question.schema, "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": shape}
        case Rung.TOOL:
            function = {
                "name": question.name,
                "description": "Takes the answer.",
                "parameters": question.schema,
            }
            request["tools"] = [{"type": "function", "function": function}]
            request["tool_choice"] = {"type": "function", "function": {"name": question.name}}
        case Rung.PLAIN:
            schema = json.dumps(question.schema, separators=(",", ":"))
            request["messages"][0]["content"] += f"\nThe JSON schema of the answer:\n{schema}\n"
    return request
