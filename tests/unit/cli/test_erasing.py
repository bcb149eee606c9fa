"""Commands that erase: they ask first, wait for the end, and tell what went."""

import json

from palimpsest.cli.exits import Exit
from palimpsest.v1 import job_pb2, privacy_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted

DONE = privacy_pb2.Erasure(
    erasure_id="e1",
    graph_id="notes",
    state=job_pb2.JOB_STATE_SUCCEEDED,
    reports=[
        privacy_pb2.ErasureReport(store="graph", removed={"statements": 1200}, verified_empty=True),
        privacy_pb2.ErasureReport(store="vectors", verified_empty=True),
    ],
)


def answers(server: Scripted, erasure: privacy_pb2.Erasure = DONE) -> None:
    server.answers("EraseGraph", privacy_pb2.EraseGraphResponse(erasure=erasure))
    server.answers("EraseEntity", privacy_pb2.EraseEntityResponse(erasure=erasure))
    server.answers("EraseTenant", privacy_pb2.EraseTenantResponse(erasure=erasure))
    server.answers("GetErasure", privacy_pb2.GetErasureResponse(erasure=erasure))


def test_nothing_is_erased_without_a_yes(server: Scripted, run: Run) -> None:
    answers(server)
    commands = [
        ["graph", "erase", "notes"],
        ["entity", "erase", "notes", "Maya"],
        ["tenant", "erase", "acme"],
    ]
    for command in commands:
        result = run(*command, stdin=b"n\n")
        assert result.exit_code == 1
        assert "for good?" in result.stderr
    assert not server.asked
    assert run(*commands[0], stdin=b"y\n").exit_code == 0
    assert server.last.graph_id == "notes"


def test_what_went_is_told_by_store(server: Scripted, run: Run) -> None:
    answers(server)
    result = run("graph", "erase", "notes", "--yes")
    assert result.exit_code == 0
    assert "1,200 statements" in result.stdout
    assert "verified" in result.stdout
    assert "nothing" in run("erasure", "e1").stdout
    told = json.loads(run("erasure", "e1", "--json").stdout)
    assert told["reports"][0]["removed"] == {"statements": "1200"}


def test_an_entity_goes_by_name_or_id_under_the_callers_request_id(server: Scripted, run: Run) -> None:
    answers(server)
    run("entity", "erase", "notes", "Maya", "--yes", "--request-id", "r")
    assert (server.last.entity.name, server.last.request_id) == ("Maya", "r")
    run("entity", "erase", "notes", "x1", "--id", "--yes")
    assert server.last.entity.entity_id == "x1"
    run("tenant", "erase", "acme", "--yes")
    assert server.last.tenant_id == "acme"
    assert server.last.request_id


def test_an_erasure_that_failed_is_told_as_one(server: Scripted, run: Run) -> None:
    answers(server, privacy_pb2.Erasure(erasure_id="e1", state=job_pb2.JOB_STATE_FAILED))
    result = run("graph", "erase", "notes", "--yes")
    assert result.exit_code == Exit.JOB_FAILED
    assert "erase again" in result.stderr
    running = privacy_pb2.Erasure(erasure_id="e1", state=job_pb2.JOB_STATE_RUNNING)
    answers(server, running)
    assert run("graph", "erase", "notes", "--yes", "--no-wait").exit_code == 0
