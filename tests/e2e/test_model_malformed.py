"""A model that answers badly or not at all: the text is kept, repaired, or failed for a reason that is named.

All cases run, a few at a time, each with a tenant of its own, before the first is looked at.
"""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from palimpsest.v1 import job_pb2
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles import model_replies as replies
from tests.doubles.model_server import ModelServer
from tests.doubles.product import a_product
from tests.e2e.faults import (
    ENGINE_ATTEMPTS,
    SAID_ON,
    STEP_ATTEMPTS,
    Case,
    Ended,
    check_failed,
    check_kept,
    dressed,
    of_task,
    of_world,
    right,
    right_rules,
    told,
    without_key,
)
from tests.e2e.talking import balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

WELL = [
    Case("Alma", dressed(replies.fenced), 1),
    Case("Bela", dressed(replies.thinking), 1),
    Case("Cyra", dressed(replies.in_prose), 1),
    Case("Dina", dressed(lambda value: replies.bare_list(value["facts"])), 1),
    Case("Edda", of_world(replies.answer({"triples": 3}), times=1), 2),
    Case("Finn", of_world(replies.noise(), times=1), 2),
    Case("Gero", of_world(replies.cut(right("Gero")), times=1), 2),
    Case("Hugo", dressed(lambda value: replies.answer(without_key(value["facts"][0]["subject"]))), 2),
    Case("Iris", of_world(replies.rate_limited(0.05), times=1), 2),
    Case("Jana", of_world(replies.dropped(), times=1), 2),
    Case("Kora", of_world(replies.failing(500), times=2), 3),
    Case("Lars", of_task("reflect", replies.noise()), 2, task="reflect"),
    Case("Mila", of_task("judge_statements", replies.failing(500)), 0, task="judge_statements"),
]
BADLY = [
    Case("Nils", of_world(replies.answer({"triples": 3})), 2, "MODEL_OUTPUT_INVALID"),
    Case("Olga", of_world(replies.noise()), 2, "MODEL_OUTPUT_INVALID"),
    Case("Pina", of_world(replies.text("")), 2, "MODEL_OUTPUT_INVALID"),
    Case("Quin", of_world(replies.cut(right("Quin"))), 2, "MODEL_OUTPUT_TRUNCATED"),
    Case("Rosa", of_world(replies.refused()), 1, "MODEL_REFUSED"),
    Case("Sven", of_world(replies.refused_in_prose()), 1, "MODEL_REFUSED"),
    Case("Tara", of_world(replies.filtered()), 1, "MODEL_REFUSED"),
    Case("Ugur", of_world(replies.failing(401, "invalid_api_key")), 1, "MODEL_MISCONFIGURED"),
    Case(
        "Vera",
        of_world(replies.rate_limited(0.05)),
        ENGINE_ATTEMPTS,
        "MODEL_RATE_LIMITED",
        retryable=True,
    ),
    Case("Ulla", of_world(replies.rate_limited(90)), 1, "MODEL_RATE_LIMITED", retryable=True),
    Case(
        "Willi",
        of_world(replies.dropped()),
        ENGINE_ATTEMPTS * STEP_ATTEMPTS,
        "MODEL_UNAVAILABLE",
        retryable=True,
    ),
    Case(
        "Xenia",
        of_world(replies.failing(503)),
        ENGINE_ATTEMPTS * STEP_ATTEMPTS,
        "MODEL_UNAVAILABLE",
        retryable=True,
    ),
    Case("Yann", of_task("normalise", replies.noise()), 2, "MODEL_OUTPUT_INVALID", task="normalise"),
    Case("Zora", of_task("classify", replies.answer([])), 2, "MODEL_OUTPUT_INVALID", task="classify"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ended(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mapping[str, Ended]]:
    cases = [*WELL, *BADLY]
    rules = [rule for case in cases for rule in case.rules(case.who)]
    folder: Path = tmp_path_factory.mktemp("malformed")
    with ModelServer(*rules, *right_rules(cases)) as server:
        settings = server.settings(max_attempts=ENGINE_ATTEMPTS, breaker_failures=1_000)
        engine = OpenAIEngine(settings)
        async with a_product(folder, engine, now=lambda: on("2026-08-01")) as product:
            yield await told(product, server, cases)
        await engine.aclose()


@pytest.mark.parametrize("case", WELL, ids=lambda case: case.who)
@pytest.mark.case("a model that returns")
async def test_what_can_be_read_or_repaired_is_kept(ended: Mapping[str, Ended], case: Case) -> None:
    await check_kept(ended[case.who], case)


@pytest.mark.parametrize("case", BADLY, ids=lambda case: case.who)
@pytest.mark.case("a model that returns")
async def test_what_cannot_fails_by_name_and_is_paid_back(ended: Mapping[str, Ended], case: Case) -> None:
    await check_failed(ended[case.who], case)


@pytest.mark.parametrize("case", BADLY, ids=lambda case: case.who)
async def test_no_error_tells_what_the_model_or_the_server_said(
    ended: Mapping[str, Ended], case: Case
) -> None:
    told = ended[case.who].job.SerializeToString()
    assert b"SECRET-PROMPT-TEXT" not in told
    assert b"127.0.0.1" not in told
    assert b"joined" not in told


async def test_a_failed_job_is_answered_again_under_its_request_id(ended: Mapping[str, Ended]) -> None:
    one = ended["Nils"]
    asked = one.memory.episode("Nils joined the team.", SAID_ON, request_id=one.job.request_id)
    again = await one.memory.tenant.call(one.memory.tenant.memory.AddEpisode, asked)
    assert (again.job.job_id, again.job.state, again.replayed) == (
        one.job.job_id,
        job_pb2.JOB_STATE_FAILED,
        True,
    )
    assert await balance(one.memory.tenant) == one.before
