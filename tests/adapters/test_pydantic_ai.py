"""The toolset in an agent of pydantic-ai, whose model is a script.

It is imported where it is used: it takes most of a second, in every process that only collects the tests.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palimpsest import Client, Memory, Patience
from palimpsest.tools import INSTRUCTIONS
from services.llm.offline import OfflineEngine
from tests.doubles.product import a_product

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo


class Script:
    """A model that calls one tool after the other, and keeps what it was shown."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self._calls = list(calls)
        self.offered: dict[str, Any] = {}
        self.instructions = ""

    async def __call__(self, messages: "Sequence[ModelMessage]", info: "AgentInfo") -> "ModelResponse":
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        self.offered = {tool.name: tool for tool in info.function_tools}
        self.instructions = info.instructions or ""
        if not self._calls:
            return ModelResponse(parts=[TextPart("done")])
        name, arguments = self._calls.pop(0)
        return ModelResponse(parts=[ToolCallPart(name, arguments)])


async def told(memory: Memory, script: Script) -> "list[ToolReturnPart]":
    """What the tools answered, in order."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelRequest, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from palimpsest.adapters.pydantic_ai import memory_toolset

    agent = Agent(FunctionModel(script), toolsets=[memory_toolset(memory)])
    ended = await agent.run("go on")
    return [
        part
        for message in ended.all_messages()
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


@pytest.mark.slow
async def test_an_agent_remembers_and_is_told_its_mistakes(tmp_path: Path) -> None:
    async with a_product(tmp_path, OfflineEngine()) as product:
        tenant = await product.tenant("acme")
        script = Script(
            ("remember", {"text": "Ada lives in Oslo.", "said_at": "2024-01-01"}),
            ("remember", {"text": "Ada moved to Graz.", "said_at": "2025-03-01"}),
            ("recall", {"question": "Where did Ada live?", "as_of": "yesterday-ish"}),
            ("recall", {"question": "Where did Ada live?", "as_of": "2024-06"}),
            ("timeline", {"subject": "Ada", "predicate": "lives_in"}),
        )
        async with Client(product.running.gateway.target, tenant.key) as client:
            first, second, wrong, then, timeline = await told(Memory(client, "mara"), script)
        assert "new facts" in str(first.content)
        assert "1 ended" in str(second.content)
        assert wrong.outcome == "retried"
        assert "is no date" in str(wrong.content)
        assert "Oslo" in str(then.content)
        assert ["Oslo" in line for line in str(timeline.content).splitlines()] == [True, False]
        assert script.instructions == INSTRUCTIONS
        assert script.offered.keys() == {
            "remember", "recall", "timeline", "what_changed", "forget", "about_user"
        }  # fmt: skip
        recall = script.offered["recall"]
        assert recall.parameters_json_schema["required"] == ["question"]
        assert "dated facts" in recall.description


async def test_a_server_that_is_away_ends_no_run() -> None:
    script = Script(("recall", {"question": "Where did Ada live?"}))
    async with Client("127.0.0.1:1", patience=Patience(attempts=1)) as client:
        (failed,) = await told(Memory(client, "mara"), script)
    assert failed.outcome == "failed"
    assert "UNAVAILABLE" in str(failed.content)
