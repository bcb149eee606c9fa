"""The endpoint: what is tried again, what is waited for, and which error tells what."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from services.domain.scope import GraphId, Scope, TenantId
from services.llm.port import (
    EngineError,
    ModelMisconfigured,
    ModelRateLimited,
    ModelUnavailable,
)
from tests.doubles import model_replies as replies
from tests.doubles.model_replies import Reply, Rule
from tests.doubles.model_server import ModelServer
from tests.unit.llm.helpers import SCOPE, engine_on, normalise

OK = replies.text("<output>Bob joined the team.</output>")
PASSING: dict[str, Reply] = {
    "500": replies.failing(500),
    "503": replies.failing(503),
    "408": replies.failing(408),
    "dropped": replies.dropped(),
    "429 at once": replies.rate_limited(0),
    "429 with a wait": replies.rate_limited(0.02),
    "429 without a wait": replies.rate_limited(None),
    "429 with an unreadable wait": replies.rate_limited("soon"),
    "a page instead of JSON": Reply(body=b"<html>busy</html>"),
    "an error in a 200": Reply(body={"error": {"message": "busy"}}),
    "no choices": Reply(body={"id": "1", "object": "chat.completion", "choices": []}),
}
LASTING: dict[str, tuple[Reply, type[EngineError]]] = {
    "401": (replies.failing(401, "invalid_api_key"), ModelMisconfigured),
    "403": (replies.failing(403), ModelMisconfigured),
    "404": (replies.failing(404, "model_not_found"), ModelMisconfigured),
    "no quota": (Reply(status=429, body={"error": {"code": "insufficient_quota"}}), ModelMisconfigured),
    "too long": (replies.failing(400, "context_length_exceeded"), ModelMisconfigured),
}


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING)
async def test_what_passes_is_tried_again_and_counted(reply: Reply) -> None:
    with ModelServer(Rule("", "", reply, 1), Rule("", "", OK)) as server:
        async with engine_on(server) as engine:
            answer = await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert answer.value.narrative == "Bob joined the team."
    assert len(server.asked) == answer.receipt.calls == 2


async def test_a_tenant_that_used_its_tokens_waits_and_others_do_not() -> None:
    other = Scope(TenantId("globex"), GraphId("ana"))
    with ModelServer(Rule("", "", OK)) as server:
        async with engine_on(
            server, max_tokens_per_minute_per_tenant=1, max_retry_after_seconds=60
        ) as engine:
            await engine.normalise(SCOPE, normalise("Bob joined the team."))
            with pytest.raises(ModelRateLimited) as told:
                await engine.normalise(SCOPE, normalise("Bob joined the team."))
            await engine.normalise(other, normalise("Bob joined the team."))
            assert engine.wait_seconds == 0, "the endpoint itself asked for nothing"
    assert told.value.retry_after_seconds > 60
    assert len(server.asked) == 2


@pytest.mark.parametrize("reply", PASSING.values(), ids=PASSING)
async def test_what_does_not_pass_ends_after_the_attempts(reply: Reply) -> None:
    expected = ModelRateLimited if reply.status == 429 else ModelUnavailable
    with ModelServer(Rule("", "", reply)) as server:
        async with engine_on(server, max_attempts=3) as engine:
            with pytest.raises(expected) as failed:
                await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert len(server.asked) == 3
    assert getattr(failed.value, "waited", False) == (reply.status == 429)
    assert failed.value.receipt is not None
    assert failed.value.receipt.calls == 3


@pytest.mark.parametrize(("reply", "error"), LASTING.values(), ids=LASTING)
async def test_what_lasts_is_not_tried_again(reply: Reply, error: type[EngineError]) -> None:
    with ModelServer(Rule("", "", reply)) as server:
        async with engine_on(server) as engine:
            with pytest.raises(error) as failed:
                await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert len(server.asked) == 1
    assert "SECRET-PROMPT-TEXT" not in str(failed.value)


async def test_a_refused_form_at_the_lowest_rung_is_misconfigured() -> None:
    with ModelServer(Rule("", "", replies.failing(400, "invalid_request_error"))) as server:
        async with engine_on(server) as engine:
            with pytest.raises(ModelMisconfigured):
                await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert 1 < len(server.asked) <= 4


@pytest.mark.parametrize(
    "wait", [lambda: "90", lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=95), usegmt=True)]
)
@pytest.mark.case("429 with Retry-After")
async def test_a_wait_longer_than_ours_is_left_to_the_caller(wait: Callable[[], str]) -> None:
    with ModelServer(Rule("", "", replies.rate_limited(wait()))) as server:
        async with engine_on(server, max_retry_after_seconds=30) as engine:
            with pytest.raises(ModelRateLimited) as failed:
                await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert len(server.asked) == 1
    assert not failed.value.waited
    assert 80 < failed.value.retry_after_seconds < 96


@pytest.mark.parametrize("reply", [replies.late(5_000, OK), replies.stalled(5_000, OK)])
async def test_a_slow_endpoint_is_given_up(reply: Reply) -> None:
    with ModelServer(Rule("", "", reply)) as server:
        async with engine_on(server, call_timeout_seconds=0.1, max_attempts=2) as engine:
            with pytest.raises(ModelUnavailable):
                await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert len(server.asked) == 2


async def test_a_task_has_one_time_limit_over_all_attempts() -> None:
    with ModelServer(Rule("", "", replies.late(5_000, OK))) as server:
        async with engine_on(server, task_timeout_seconds=1.0, max_attempts=9) as engine:
            with pytest.raises(ModelUnavailable) as failed:
                await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert failed.value.receipt is not None
    assert failed.value.receipt.calls == len(server.asked) == 1


async def test_nobody_listening_is_unavailable() -> None:
    with ModelServer() as server:
        settings = server.settings()
    async with engine_on(server, base_url=settings.base_url, max_attempts=2) as engine:
        with pytest.raises(ModelUnavailable):
            await engine.normalise(SCOPE, normalise("Bob joined the team."))


async def test_an_open_breaker_sends_nothing() -> None:
    with ModelServer(Rule("", "", replies.failing(500))) as server:
        async with engine_on(server, max_attempts=1, breaker_failures=2, breaker_open_seconds=60) as engine:
            for _ in range(4):
                with pytest.raises(ModelUnavailable):
                    await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert len(server.asked) == 2


async def test_no_tenant_has_more_calls_in_flight_than_its_share() -> None:
    with ModelServer(delay_ms=20) as server:
        async with engine_on(server, max_concurrency_per_tenant=2, max_concurrency=3) as engine:
            task = normalise("Bob joined the team.")
            await asyncio.gather(*(engine.normalise(SCOPE, task) for _ in range(6)))
            assert server.most_at_once == 2
            other = Scope(TenantId("globex"), GraphId("g"))
            scopes = [SCOPE, other] * 4
            await asyncio.gather(*(engine.normalise(scope, task) for scope in scopes))
            assert server.most_at_once == 3


async def test_one_refusal_holds_back_all_calls_rather_than_each() -> None:
    with ModelServer(Rule("", "", replies.rate_limited(0.2), 1), Rule("", "", OK)) as server:
        async with engine_on(server) as engine:
            task = normalise("Bob joined the team.")
            first = asyncio.ensure_future(engine.normalise(SCOPE, task))
            while not first.done() and engine.wait_seconds == 0:  # noqa: ASYNC110 - the endpoint has no event
                await asyncio.sleep(0.005)
            others = [asyncio.ensure_future(engine.normalise(SCOPE, task)) for _ in range(4)]
            answers = await asyncio.gather(first, *others)
    assert [answer.receipt.calls for answer in answers] == [2, 1, 1, 1, 1]


async def test_the_key_is_sent_and_shown_nowhere() -> None:
    with ModelServer(api_key="sk-secret-key") as server:
        async with engine_on(server, api_key="sk-secret-key") as engine:
            await engine.normalise(SCOPE, normalise("Bob joined the team."))
        settings = server.settings(api_key="sk-wrong-key")
        async with engine_on(server, api_key="sk-wrong-key") as engine:
            with pytest.raises(ModelMisconfigured) as failed:
                await engine.normalise(SCOPE, normalise("Bob joined the team."))
    assert "sk-" not in repr(settings) + str(settings) + str(failed.value) + settings.model_dump_json()
    assert {asked.headers.get("openai-organization") for asked in server.asked} == {None}
