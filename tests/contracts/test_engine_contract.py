"""The engine contract, for the OpenAI-compatible engine through the model server."""

from collections.abc import AsyncIterator, Iterator

import pytest

from services.llm.openai_engine import OpenAIEngine
from services.llm.port import Engine
from tests.contracts.engine import EngineContract
from tests.doubles.model_server import ModelServer


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


class TestOpenAIEngine(EngineContract):
    @pytest.fixture(params=["json_schema", "tool", "plain"])
    async def engine(self, server: ModelServer, request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
        engine = OpenAIEngine(server.settings(structured_output=request.param))
        yield engine
        await engine.aclose()
