"""Replies of real models to another task: each is a typed failure to every prompt; none is silently empty."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.llm import tasks
from services.llm.port import ModelOutputInvalid, ModelRefused
from services.llm.prompts.render import Prompt
from tests.doubles import model_replies as replies
from tests.doubles.model_replies import Rule
from tests.doubles.model_server import ModelServer
from tests.unit.llm.helpers import SCOPE, SETTING, engine_on, extract, turns
from tests.unit.llm.test_prompts import FILLED


def given(shared: Path) -> list[str]:
    lines = (shared / "data/model-replies/replies.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["response"] for line in lines]


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("prompt", "task"), FILLED, ids=lambda value: getattr(value, "name", ""))
def test_each_reads_as_something_or_says_what_is_wrong(
    shared: Path, prompt: Prompt[Any, Any, Any], task: Any, every: int
) -> None:
    texts = given(shared)
    assert len(texts) > 900
    for text in texts[::every]:
        parsed = prompt.parse(text)
        if parsed.value is None:
            assert parsed.problems
            continue
        reading = prompt.read(parsed.value, task)
        assert reading.problems or prompt.usable(reading.value)


@pytest.mark.parametrize("every", [300, pytest.param(40, marks=pytest.mark.slow)])
async def test_each_ends_a_task_by_name(shared: Path, every: int) -> None:
    for text in given(shared)[::every]:
        with ModelServer(Rule("", "", replies.text(text))) as server:
            async with engine_on(server) as engine:
                with pytest.raises((ModelOutputInvalid, ModelRefused)):
                    await engine.understand(SCOPE, tasks.Understand(turns("Bob joined."), SETTING))
                with pytest.raises((ModelOutputInvalid, ModelRefused)):
                    await engine.extract_world(SCOPE, extract("Bob joined."))
