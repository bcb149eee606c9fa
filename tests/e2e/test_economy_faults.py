"""Faults of the model server with the economy profile, and a slow server with both: as documented for full.

Cases that are not to be looked at in a run are not told.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import pytest
import pytest_asyncio

from services.llm.openai_engine import OpenAIEngine
from services.llm.port import Engine
from tests.builders import on
from tests.doubles import model_replies as replies
from tests.doubles.model_replies import Reply
from tests.doubles.model_server import ModelServer
from tests.doubles.product import a_product
from tests.e2e.faults import (
    ENGINE_ATTEMPTS,
    STEP_ATTEMPTS,
    Case,
    Ended,
    at_once,
    check_failed,
    check_kept,
    of_task,
    right_rules,
    told,
)
from tests.examples import sampled

# Every day the full profile has the like (test_model_malformed).
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HASTY = "Hasty"
"""In the names of those whose model must answer within half a second."""
EVERY_TIME = ENGINE_ATTEMPTS * STEP_ATTEMPTS


def economy(
    who: str, reply: Reply, calls: int, reason: str = "", task: str = "understand", **more: Any
) -> Case:
    """A case of the economy profile; `times`: how often the model misbehaves."""
    rules = of_task(task, reply, more.pop("times", None))
    return Case(who, rules, calls, reason, task=task, economy=True, **more)


KEPT = [
    economy("Abel", replies.fenced(at_once("Abel")), 1),
    economy("Dora", replies.answer({"triples": 3}), 2, times=1),
    economy("Elias", replies.noise(), 2, task="resolve"),
    economy("Fritz", replies.late(300, replies.answer(at_once("Fritz"))), 1),
    economy("Berta", replies.in_prose(at_once("Berta")), 1),
    economy("Clara", replies.thinking(at_once("Clara")), 1),
    economy("Gusti", replies.cut(at_once("Gusti")), 2, times=1),
    economy("Heidi", replies.rate_limited(0.05), 2, times=1),
    economy("Igor", replies.dropped(), 2, times=1),
    economy("Judit", replies.failing(500), ENGINE_ATTEMPTS, task="resolve"),
]
FAILED = [
    economy("Moritz", replies.answer({"triples": 3}), 2, "MODEL_OUTPUT_INVALID"),
    economy("Paula", replies.rate_limited(0.05), ENGINE_ATTEMPTS, "MODEL_RATE_LIMITED", retryable=True),
    Case(
        f"{HASTY}Theo",
        of_task("normalise", replies.late(3_000, replies.text(""))),
        EVERY_TIME,
        "MODEL_UNAVAILABLE",
        retryable=True,
        task="normalise",
    ),
    economy("Norbert", replies.noise(), 2, "MODEL_OUTPUT_INVALID"),
    economy("Otto", replies.cut(at_once("Otto")), 2, "MODEL_OUTPUT_TRUNCATED"),
    economy("Quirin", replies.refused(), 1, "MODEL_REFUSED"),
    economy("Ria", replies.refused_in_prose(), 1, "MODEL_REFUSED"),
    economy("Sepp", replies.dropped(), EVERY_TIME, "MODEL_UNAVAILABLE", retryable=True),
    economy(
        f"{HASTY}Uli",
        replies.late(3_000, replies.answer(at_once("Uli"))),
        EVERY_TIME,
        "MODEL_UNAVAILABLE",
        retryable=True,
    ),
]


class ByPatience:
    """Two engines on one server: that of a hasty text waits half a second for each call."""

    def __init__(self, patient: OpenAIEngine, hasty: OpenAIEngine) -> None:
        self._patient = patient
        self._hasty = hasty

    def __getattr__(self, name: str) -> Any:
        if not callable(getattr(self._patient, name)):
            return getattr(self._patient, name)

        async def asked(scope: Any, task: Any) -> Any:
            engine = self._hasty if HASTY in scope.tenant else self._patient
            return await getattr(engine, name)(scope, task)

        return asked


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ended(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mapping[str, Ended]]:
    looked_at = {
        item.callspec.params["case"].who
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }
    cases = [case for case in (*KEPT, *FAILED) if case.who in looked_at]
    rules = [rule for case in cases for rule in case.rules(case.who)]
    with ModelServer(*rules, *right_rules(cases)) as server:
        patient = server.settings(max_attempts=ENGINE_ATTEMPTS, breaker_failures=1_000)
        hasty = patient.model_copy(update={"call_timeout_seconds": 0.5})
        engines = OpenAIEngine(patient), OpenAIEngine(hasty)
        engine = cast("Engine", ByPatience(*engines))
        folder = tmp_path_factory.mktemp("faults")
        async with a_product(folder, engine, now=lambda: on("2026-08-01")) as product:
            yield await told(product, server, cases)
        await asyncio.gather(*(one.aclose() for one in engines))


@pytest.mark.parametrize("case", sampled(KEPT, 4))
@pytest.mark.case("a model that returns")
async def test_what_can_be_read_or_repaired_is_kept(ended: Mapping[str, Ended], case: Case) -> None:
    await check_kept(ended[case.who], case)


@pytest.mark.parametrize("case", sampled(FAILED, 4))
@pytest.mark.case("a model that returns")
async def test_what_cannot_fails_by_name_and_is_paid_back(ended: Mapping[str, Ended], case: Case) -> None:
    await check_failed(ended[case.who], case)
