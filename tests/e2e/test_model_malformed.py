"""A model that answers badly or not at all: the text is kept, repaired, or failed for a reason that is named.

All cases run, a few at a time, each with a tenant of its own, before the first is looked at.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.rpc import error_details_pb2, status_pb2

from palimpsest.v1 import episode_pb2, job_pb2
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles import model_replies as replies
from tests.doubles.misbehaviour import fact
from tests.doubles.model_replies import Reply, Rule
from tests.doubles.model_server import ModelServer
from tests.doubles.product import IMPATIENT, a_product
from tests.e2e.talking import Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAID_ON = "2024-03-05"
ENGINE_ATTEMPTS = 3
STEP_ATTEMPTS = IMPATIENT.patience.attempts


def right(who: str) -> dict[str, Any]:
    """What a good model answers."""
    return {"facts": [fact(who, "member_of", "the team", f"{who} joined the team")]}


def without_key(who: str) -> dict[str, Any]:
    """The right fact beside one that lacks its quote."""
    broken = fact(who, "member_of", "the board", "")
    del broken["quote"]
    return {"facts": [broken, *right(who)["facts"]]}


def of_world(*parts: Reply, times: int | None = None) -> Callable[[str], list[Rule]]:
    """Answers extract_world with each reply in turn, `times` times each (None: for ever)."""
    return lambda who: [Rule("extract_world", who, reply, times) for reply in parts]


def dressed(dress: Callable[[Any], Reply]) -> Callable[[str], list[Rule]]:
    """The right answer in strange clothes."""
    return lambda who: [Rule("extract_world", who, dress(right(who)))]


def of_task(task: str, reply: Reply, times: int | None = None) -> Callable[[str], list[Rule]]:
    return lambda who: [Rule(task, who, reply, times)]


@dataclass(frozen=True, slots=True)
class Case:
    """`rules` for a text about somebody. `reason` is empty where the job must succeed; `calls` counts HTTP
    requests of the task that `rules` is about.
    """

    who: str
    rules: Callable[[str], list[Rule]]
    calls: int
    reason: str = ""
    retryable: bool = False
    task: str = "extract_world"


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


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a case."""

    memory: Memory
    job: job_pb2.Job
    before: tuple[int, int]
    calls: int


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ended(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mapping[str, Ended]]:
    cases = [*WELL, *BADLY]
    rules = [rule for case in cases for rule in case.rules(case.who)]
    rules += [Rule("extract_world", case.who, replies.answer(right(case.who))) for case in cases]
    folder: Path = tmp_path_factory.mktemp("malformed")
    with ModelServer(*rules) as server:
        settings = server.settings(max_attempts=ENGINE_ATTEMPTS, breaker_failures=1_000)
        engine = OpenAIEngine(settings)
        async with a_product(folder, engine, now=lambda: on("2026-08-01")) as product:
            few = asyncio.Semaphore(6)

            async def run(case: Case) -> Ended:
                async with few:
                    memory = Memory(await product.tenant(case.who), "notes")
                    before = await balance(memory.tenant)
                    job = await memory.say(f"{case.who} joined the team.", SAID_ON)
                calls = [asked for asked in server.of_task(case.task) if case.who in asked.user]
                return Ended(memory, job, before, len(calls))

            done: Sequence[Ended] = await asyncio.gather(*map(run, cases))
            yield {case.who: one for case, one in zip(cases, done, strict=True)}
        await engine.aclose()


def reason_of(status: status_pb2.Status) -> tuple[str, bool]:
    """The reason of a status, and whether it says when to try again."""
    info = error_details_pb2.ErrorInfo()
    found = [packed for packed in status.details if packed.Unpack(info)]
    assert found, "a failure is typed"
    assert info.domain == "palimpsest"
    return info.reason, any(packed.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for packed in status.details)


@pytest.mark.parametrize("case", WELL, ids=lambda case: case.who)
@pytest.mark.case("a model that returns")
async def test_what_can_be_read_or_repaired_is_kept(ended: Mapping[str, Ended], case: Case) -> None:
    one = ended[case.who]
    assert one.job.state == job_pb2.JOB_STATE_SUCCEEDED
    assert not one.job.HasField("error")
    assert await one.memory.facts() == {(case.who, "member_of", "the team", SAID_ON, "")}
    assert one.calls == case.calls
    if case.calls:
        assert {stage.stage: stage.calls for stage in one.job.receipt.stages}[case.task] == case.calls
    available, held = await balance(one.memory.tenant)
    assert (one.before[0] - available, held) == (one.job.credits.spent_micros, 0)
    assert one.job.credits.spent_micros > 0


@pytest.mark.parametrize("case", BADLY, ids=lambda case: case.who)
@pytest.mark.case("a model that returns")
async def test_what_cannot_fails_by_name_and_is_paid_back(ended: Mapping[str, Ended], case: Case) -> None:
    one = ended[case.who]
    assert one.job.state == job_pb2.JOB_STATE_FAILED
    (chunk,) = one.job.chunks
    assert chunk.stage == episode_pb2.CHUNK_STAGE_FAILED
    assert reason_of(chunk.error) == (case.reason, case.retryable)
    assert reason_of(one.job.error) == (case.reason, case.retryable)
    assert one.calls == case.calls
    assert (one.job.credits.spent_micros, one.job.credits.held_micros) == (0, 0)
    assert one.job.credits.refunded_micros > 0
    assert await balance(one.memory.tenant) == one.before
    # Nothing half: no fact, yet what was said is kept.
    assert await one.memory.statements() == []
    assert one.job.revision == 0
    read = await one.memory.read_episode(chunk.episode_id)
    assert read.text == f"{case.who} joined the team."


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
