"""Every error is one line on standard error, with its reason, and an exit code of its kind."""

import json

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from palimpsest.cli.exits import Exit
from palimpsest.v1 import credits_pb2
from tests.machine import ROOT
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted, refusal

Code = grpc.StatusCode
NAMED = error_details_pb2.ResourceInfo(resource_type="thing", resource_name="Nobody")
WAIT = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=2))


@pytest.mark.parametrize(
    ("status", "code", "line"),
    [
        (refusal(Code.UNAUTHENTICATED, "API_KEY_INVALID", "no valid API key"), Exit.FORBIDDEN,
         "API_KEY_INVALID: no valid API key"),
        (refusal(Code.PERMISSION_DENIED, "SCOPE_MISSING", "needs READ"), Exit.FORBIDDEN,
         "SCOPE_MISSING: needs READ"),
        (refusal(Code.NOT_FOUND, "ENTITY_NOT_FOUND", "no such entity"), Exit.NOT_FOUND,
         "ENTITY_NOT_FOUND: no such entity"),
        (refusal(Code.NOT_FOUND, "ENTITY_NOT_FOUND", "no such entity", NAMED), Exit.NOT_FOUND,
         "ENTITY_NOT_FOUND: no such entity: Nobody"),
        (refusal(Code.NOT_FOUND, "GRAPH_NOT_FOUND", "no such graph", NAMED), Exit.NOT_FOUND,
         "GRAPH_NOT_FOUND: no such graph: Nobody; the first `add` to it makes it"),
        (refusal(Code.ALREADY_EXISTS, "GRAPH_ALREADY_EXISTS", "the graph exists", NAMED), Exit.FAILED,
         "GRAPH_ALREADY_EXISTS: the graph exists"),
        (refusal(Code.RESOURCE_EXHAUSTED, "INSUFFICIENT_CREDITS", "too few"), Exit.CREDITS,
         "INSUFFICIENT_CREDITS: too few"),
        (refusal(Code.FAILED_PRECONDITION, "MAX_CREDITS_EXCEEDED", "too many"), Exit.CREDITS,
         "MAX_CREDITS_EXCEEDED: too many"),
        (refusal(Code.RESOURCE_EXHAUSTED, "RATE_LIMITED", "too fast", WAIT), Exit.TRY_AGAIN,
         "RATE_LIMITED: too fast; try again in 2 s"),
        (refusal(Code.UNAVAILABLE, "STORE_UNAVAILABLE", "graph is down", WAIT), Exit.TRY_AGAIN,
         "STORE_UNAVAILABLE: graph is down; try again in 2 s"),
        (refusal(Code.DEADLINE_EXCEEDED, "DEADLINE_TOO_SHORT", "too late"), Exit.TRY_AGAIN,
         "DEADLINE_TOO_SHORT: too late"),
        (refusal(Code.ALREADY_EXISTS, "REQUEST_ID_REUSED", "used before"), Exit.FAILED,
         "REQUEST_ID_REUSED: used before"),
        (refusal(Code.UNIMPLEMENTED, "NOT_IMPLEMENTED", "later"), Exit.FAILED, "NOT_IMPLEMENTED: later"),
        (refusal(Code.INTERNAL, "INTERNAL", "a bug", error_details_pb2.RequestInfo(request_id="r7")),
         Exit.FAILED, "INTERNAL: a bug; request id r7"),
        (status_pb2.Status(code=Code.UNKNOWN.value[0], message="not ours\nat all"), Exit.FAILED,
         "UNKNOWN: not ours at all"),
    ],
)  # fmt: skip
def test_an_error_is_a_line_and_a_code(
    server: Scripted, run: Run, status: status_pb2.Status, code: Exit, line: str
) -> None:
    server.answers("GetBalance", status)
    result = run("balance")
    assert (result.exit_code, result.stderr, result.stdout) == (code, f"palimpsest: {line}\n", "")


def test_every_violation_is_in_the_line(server: Scripted, run: Run) -> None:
    violations = error_details_pb2.BadRequest(
        field_violations=[
            error_details_pb2.BadRequest.FieldViolation(field="text", description="is empty"),
            error_details_pb2.BadRequest.FieldViolation(description="kind needs a session"),
        ]
    )
    server.answers("AddEpisode", refusal(Code.INVALID_ARGUMENT, "VALIDATION_FAILED", "bad", violations))
    result = run("add", "g", "x")
    assert result.exit_code == Exit.USAGE
    assert result.stderr == "palimpsest: VALIDATION_FAILED: text: is empty; kind needs a session\n"


def test_with_json_the_error_is_the_rich_status(server: Scripted, run: Run) -> None:
    server.answers("GetBalance", refusal(Code.NOT_FOUND, "TENANT_NOT_FOUND", "gone"))
    result = run("balance", "--json")
    assert result.exit_code == Exit.NOT_FOUND
    (line,) = result.stderr.splitlines()
    status = json.loads(line)
    assert (status["code"], status["message"]) == (5, "gone")
    assert status["details"][0]["reason"] == "TENANT_NOT_FOUND"


def test_another_domains_reason_is_not_taken_for_ours(server: Scripted, run: Run) -> None:
    foreign = status_pb2.Status(code=Code.INTERNAL.value[0], message="boom")
    foreign.details.add().Pack(
        error_details_pb2.ErrorInfo(reason="INSUFFICIENT_CREDITS", domain="proxy.test")
    )
    server.answers("GetBalance", foreign)
    result = run("balance")
    assert (result.exit_code, result.stderr) == (Exit.FAILED, "palimpsest: INTERNAL: boom\n")


def test_no_server_is_told_with_its_address_and_where_that_comes_from(run: Run) -> None:
    result = run("balance", PALIMPSEST_TARGET="127.0.0.1:1")
    assert result.exit_code == Exit.TRY_AGAIN
    (line,) = result.stderr.splitlines()
    assert "no answer from 127.0.0.1:1 (--target or PALIMPSEST_TARGET)" in line
    assert "`palimpsest up`" in line


def test_no_key_is_told_as_such(server: Scripted, run: Run) -> None:
    server.answers("GetBalance", refusal(Code.UNAUTHENTICATED, "API_KEY_INVALID", "no valid API key"))
    result = run("balance", PALIMPSEST_KEY="")
    assert result.exit_code == Exit.FORBIDDEN
    assert "set PALIMPSEST_KEY or give --key" in result.stderr


def test_an_operators_command_without_a_key_asks_for_the_operators(server: Scripted, run: Run) -> None:
    server.answers("CreateTenant", refusal(Code.UNAUTHENTICATED, "API_KEY_INVALID", "no valid API key"))
    result = run("tenant", "create", "acme", PALIMPSEST_KEY="", PALIMPSEST_OPERATOR_KEY="")
    assert result.exit_code == Exit.FORBIDDEN
    assert "set PALIMPSEST_OPERATOR_KEY or give --key" in result.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["balance", "--nonsense"], ["recall", "g"]])
def test_a_wrong_command_line_is_usage(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (Exit.USAGE, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("palimpsest: ")
    assert "--help` tells more)" in line


def test_the_usage_of_another_parts_command_is_a_line_too(run: Run) -> None:
    done = run("mcp", "--port", "x")
    assert done.exit_code == Exit.USAGE
    assert done.stderr.splitlines()[-1].endswith("(`palimpsest mcp --help` tells more)")


def test_what_is_left_out_in_a_question_does_nothing(server: Scripted, run: Run) -> None:
    done = run("graph", "erase", "g", stdin=b"n\n")
    assert done.exit_code == Exit.FAILED
    assert done.stderr.endswith("palimpsest: nothing was done\n")
    assert not server.asked


def test_the_help_names_every_exit_code(run: Run) -> None:
    text = " ".join(run("--help").stdout.split())
    assert all(f"{code.value} {code.name.lower().replace('_', ' ')}" in text for code in Exit)


def test_json_is_canonical(server: Scripted, run: Run) -> None:
    server.answers(
        "GetBalance", credits_pb2.GetBalanceResponse(balance=credits_pb2.Balance(available_micros=5))
    )
    result = run("balance", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"balance": {"availableMicros": "5"}})


def test_the_guide_names_every_exit_code() -> None:
    guide = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    listed = [line.split("|")[1].strip() for line in guide.splitlines() if line.startswith("| ")]
    assert listed == ["code", *(str(code.value) for code in Exit), "130"]
