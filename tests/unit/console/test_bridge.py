"""The bridge: which calls pass, with whose key, how refusals are told."""

import json
import logging
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.console.bridge import CONFIRMED, MAX_BODY_BYTES
from palimpsest.console.calls import CALLS
from palimpsest.console.page import Page
from palimpsest.console.refusals import refusal_of
from palimpsest.errors import error_of_status
from palimpsest.v1 import graph_pb2, memory_statements_pb2
from tests.machine import ROOT
from tests.unit.cli.serving import Scripted, refusal
from tests.unit.console.conftest import KEY, Browser, opened
from tests.unit.test_public_api import KEYED, methods

MAKERS_OF_CHANGES = {"EndStatement", "DenyStatement", "RestoreStatement", "MergeEntities", "SplitEntity"}


def test_the_list_reads_and_changes_only_what_a_user_may_take_back() -> None:
    assert {name for name, call in CALLS.items() if call.changes} == MAKERS_OF_CHANGES
    reads = CALLS.keys() - MAKERS_OF_CHANGES
    assert all(name.startswith(("Get", "List", "Recall")) for name in reads)
    assert not reads & set(KEYED.split())


def test_the_list_names_calls_that_there_are() -> None:
    for name, call in CALLS.items():
        assert methods()[name].input_type is call.request.DESCRIPTOR
        assert not methods()[name].server_streaming


def test_the_page_makes_the_calls_that_are_listed_and_no_other() -> None:
    sources = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "console" / "src").rglob("*.ts*")))
    unused = {name for name in CALLS if f'"{name}"' not in sources}
    assert not unused, "take these out of CALLS: the page does not make them"


async def test_a_call_goes_with_the_key_of_whoever_asks(server: Scripted, reading: Browser) -> None:
    server.answers("GetGraph", graph_pb2.GetGraphResponse(graph=graph_pb2.Graph(graph_id="图")))
    answer = await reading.ask("GetGraph", {"graphId": "图"})
    assert (answer.status_code, answer.json()) == (200, {"graph": {"graphId": "图"}})
    await reading.ask("GetGraph", {"graphId": "b"}, Authorization="bearer pk_other")
    assert server.keys == [KEY, "pk_other"]
    assert server.last.graph_id == "b"


@pytest.mark.parametrize("given", ["", "pk_x", "Basic pk_x", "Bearer ", "Bearer a\tb", f"Bearer {'k' * 513}"])
async def test_without_a_key_nothing_is_asked(server: Scripted, reading: Browser, given: str) -> None:
    answer = await reading.ask("GetBalance", Authorization=given)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (401, "API_KEY_INVALID")
    assert not server.asked


@pytest.mark.parametrize("call", ["DeleteEpisode", "EraseTenant", "CreateApiKey", "GetNothing", "__init__"])
async def test_what_is_not_listed_does_not_pass(server: Scripted, changing: Browser, call: str) -> None:
    answer = await changing.ask(call)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "CALL_NOT_LISTED")
    assert not server.asked


async def test_changes_need_the_option_the_confirmation_and_a_name(
    server: Scripted, reading: Browser, changing: Browser
) -> None:
    server.answers("EndStatement", memory_statements_pb2.EndStatementResponse(revision=3))
    body = {"graphId": "g", "statementId": "s", "requestId": "r"}
    refused = [
        await reading.ask("EndStatement", body, **{CONFIRMED: "EndStatement"}),
        await changing.ask("EndStatement", body),
        await changing.ask("EndStatement", body, **{CONFIRMED: "DenyStatement"}),
        await changing.ask("EndStatement", body | {"requestId": ""}, **{CONFIRMED: "EndStatement"}),
    ]
    assert [one.json()["error"]["reason"] for one in refused] == [
        "CHANGES_NOT_ALLOWED",
        "NOT_CONFIRMED",
        "NOT_CONFIRMED",
        "VALIDATION_FAILED",
    ]
    assert not server.asked
    done = await changing.ask("EndStatement", body, **{CONFIRMED: "EndStatement"})
    assert (done.status_code, done.json()) == (200, {"revision": "3"})
    assert (await reading.get("/about")).json() == {"changesAllowed": False}
    assert (await changing.get("/about")).json() == {"changesAllowed": True}


async def test_a_refusal_of_the_server_is_told_whole(server: Scripted, reading: Browser) -> None:
    limited = refusal(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "RATE_LIMITED",
        "slower",
        error_details_pb2.RetryInfo(retry_delay=Duration(seconds=2)),
        error_details_pb2.RequestInfo(request_id="req-1"),
    )
    violation = error_details_pb2.BadRequest.FieldViolation(field="graph_id", description="must not be empty")
    wrong = refusal(
        grpc.StatusCode.INVALID_ARGUMENT,
        "VALIDATION_FAILED",
        "wrong",
        error_details_pb2.BadRequest(field_violations=[violation]),
    )
    server.answers("GetGraph", limited, wrong)
    answer = await reading.ask("GetGraph")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "2")
    assert answer.json()["error"] == {
        "reason": "RATE_LIMITED",
        "message": "slower",
        "code": "RESOURCE_EXHAUSTED",
        "requestId": "req-1",
        "retryAfterSeconds": 2.0,
    }
    answer = await reading.ask("GetGraph")
    assert answer.status_code == 400
    assert answer.json()["error"]["violations"] == [{"field": "graph_id", "description": "must not be empty"}]


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, "API_KEY_INVALID", 401),
        (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING", 403),
        (grpc.StatusCode.NOT_FOUND, "GRAPH_NOT_FOUND", 404),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "INSUFFICIENT_CREDITS", 402),
        (grpc.StatusCode.FAILED_PRECONDITION, "NOT_MERGED", 412),
        (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", 503),
        (grpc.StatusCode.INTERNAL, "INTERNAL", 500),
    ],
)
def test_each_code_has_its_own_in_http(code: grpc.StatusCode, reason: str, status: int) -> None:
    told = refusal_of(error_of_status(refusal(code, reason)))
    assert (told.status, told.reason) == (status, reason)


def test_every_code_of_grpc_is_an_error_in_http() -> None:
    for code in set(grpc.StatusCode) - {grpc.StatusCode.OK}:
        assert refusal_of(error_of_status(refusal(code, "X"))).status >= 400


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b'{"graphId": 5}', 400),
        (b'{"nobody": 1}', 400),
        (b'{"graphId": "\xff"}', 400),
        (b'{"graphId": "\\ud800"}', 400),
        (b"[" * 30_000, 400),
        (b" " * (MAX_BODY_BYTES + 1), 413),
    ],
)
async def test_a_body_that_is_no_request_is_refused(
    server: Scripted, reading: Browser, body: bytes, status: int
) -> None:
    answer = await reading.ask("GetGraph", body)
    assert answer.status_code == status, answer.text
    assert not server.asked


async def test_only_json_is_read(server: Scripted, reading: Browser) -> None:
    # What a form of another page could send without being asked first.
    answer = await reading.ask("GetGraph", b"{}", **{"Content-Type": "text/plain"})
    assert (answer.status_code, server.asked) == (415, [])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["graphId", "pageSize", "seeds", "asOf", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=VALUES)
async def test_any_json_is_a_request_or_refused(server: Scripted, reading: Browser, body: Any) -> None:
    server.answers("GetSubgraph", refusal(grpc.StatusCode.NOT_FOUND, "GRAPH_NOT_FOUND"))
    answer = await reading.ask("GetSubgraph", json.dumps(body))
    assert answer.status_code in (400, 404)


async def test_a_server_that_is_away_is_told_as_such(page: Page) -> None:
    async for away in opened(Scripted("127.0.0.1:1"), page, allow_changes=False):
        answer = await away.ask("GetBalance")
        assert (answer.status_code, answer.json()["error"]["reason"]) == (503, "UNAVAILABLE")


async def test_no_key_is_written_to_a_log(
    server: Scripted, reading: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers("GetBalance", refusal(grpc.StatusCode.UNAUTHENTICATED, "API_KEY_INVALID"))
    with caplog.at_level(logging.DEBUG):
        answer = await reading.ask("GetBalance")
    assert answer.status_code == 401
    assert KEY not in caplog.text
    assert KEY not in answer.text
