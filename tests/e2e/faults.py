"""Faults of a model server, each with the state in which a job must end: kept whole, or failed by name.

All cases of a run are told, some at a time, each to a tenant of its own, before the first is looked at.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.rpc import error_details_pb2, status_pb2

from palimpsest.v1 import episode_pb2, graph_pb2, job_pb2
from tests.doubles import model_replies as replies
from tests.doubles.misbehaviour import fact
from tests.doubles.model_replies import Reply, Rule
from tests.doubles.model_server import ModelServer
from tests.doubles.product import IMPATIENT, Product
from tests.e2e.talking import Memory, balance

AT_ONCE = 4
"""Cases: so many that waiting costs little, so few that a slow machine's gateway refuses none."""
SAID_ON = "2024-03-05"
ENGINE_ATTEMPTS = 3
STEP_ATTEMPTS = IMPATIENT.patience.attempts


def right(who: str) -> dict[str, Any]:
    """What a good model answers."""
    return {"facts": [fact(who, "member_of", "the team", f"{who} joined the team")]}


def at_once(who: str) -> dict[str, Any]:
    """What a good model answers to the task that does all at once."""
    (one,) = right(who)["facts"]
    return {"facts": [{**one, "aspect": "Identity", "event_at": None}], "sentences": [], "nothing": None}


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
    economy: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a case."""

    memory: Memory
    job: job_pb2.Job
    before: tuple[int, int]
    calls: int


def right_rules(cases: Sequence[Case]) -> list[Rule]:
    """The right answers, to be tried after the cases' own rules."""
    stepwise = [Rule("extract_world", case.who, replies.answer(right(case.who))) for case in cases]
    return [*stepwise, *(Rule("understand", one.who, replies.answer(at_once(one.who))) for one in cases)]


async def told(product: Product, server: ModelServer, cases: Sequence[Case]) -> Mapping[str, Ended]:
    """What became of each case, by whom it is about."""

    places = asyncio.Semaphore(AT_ONCE)

    async def run(case: Case) -> Ended:
        async with places:
            return await one(case)

    async def one(case: Case) -> Ended:
        memory = Memory(await product.tenant(case.who), "notes")
        if case.economy:
            settings = graph_pb2.GraphSettings(extraction_profile=graph_pb2.EXTRACTION_PROFILE_ECONOMY)
            request = graph_pb2.CreateGraphRequest(graph_id=memory.graph, settings=settings)
            await memory.tenant.call(memory.tenant.graphs.CreateGraph, request)
        before = await balance(memory.tenant)
        job = await memory.say(f"{case.who} joined the team.", SAID_ON)
        calls = [asked for asked in server.of_task(case.task) if case.who in asked.user]
        return Ended(memory, job, before, len(calls))

    done: Sequence[Ended] = await asyncio.gather(*map(run, cases))
    return {case.who: one for case, one in zip(cases, done, strict=True)}


def reason_of(status: status_pb2.Status) -> tuple[str, bool]:
    """The reason of a status, and whether it says when to try again."""
    info = error_details_pb2.ErrorInfo()
    found = [packed for packed in status.details if packed.Unpack(info)]
    assert found, "a failure is typed"
    assert info.domain == "palimpsest"
    return info.reason, any(packed.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for packed in status.details)


async def check_kept(one: Ended, case: Case) -> None:
    """Read or repaired: all is known, and paid for."""
    assert one.job.state == job_pb2.JOB_STATE_SUCCEEDED
    assert not one.job.HasField("error")
    assert await one.memory.facts() == {(case.who, "member_of", "the team", SAID_ON, "")}
    assert one.calls == case.calls
    if case.calls:
        assert {stage.stage: stage.calls for stage in one.job.receipt.stages}[case.task] == case.calls
    available, held = await balance(one.memory.tenant)
    assert (one.before[0] - available, held) == (one.job.credits.spent_micros, 0)
    assert one.job.credits.spent_micros > 0


async def check_failed(one: Ended, case: Case) -> None:
    """Failed by name: nothing half, everything paid back; what it cost us is told."""
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
    if case.calls:
        assert {stage.stage: stage.calls for stage in one.job.receipt.stages}[case.task] == case.calls
